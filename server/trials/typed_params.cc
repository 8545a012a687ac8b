#include "server/trials/typed_params.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"

namespace hpo::server {
namespace {

// Beyond this not every whole number is a double.
constexpr double kLargestWhole = 9007199254740992.0;

ParamValue AsDomainType(const Domain& domain, const ParamValue& value) {
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr || !std::holds_alternative<IntDomain>(domain)) return Coerce(domain, value);
  const bool is_whole = std::abs(*real) <= kLargestWhole && std::trunc(*real) == *real;
  return is_whole ? ParamValue(static_cast<int64_t>(*real)) : value;
}

}  // namespace

absl::StatusOr<ParamMap> TypedParams(const SearchSpace& space, const ParamMap& given) {
  ParamMap typed;
  for (const auto& [name, value] : given) {
    const Parameter* parameter = space.Find(name);
    if (parameter == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", name, ": expected one of the study's parameters"));
    }
    typed[name] = AsDomainType(parameter->domain, value);
  }
  return typed;
}

bool IsWithin(const SearchSpace& space, const ParamMap& params) {
  return std::all_of(params.begin(), params.end(), [&space](const auto& param) {
    const Parameter* const parameter = space.Find(param.first);
    return parameter != nullptr && Contains(parameter->domain, param.second);
  });
}

}  // namespace hpo::server
