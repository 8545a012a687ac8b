#include "server/studies/typed_params.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

// Beyond this not every whole number is a double.
constexpr double kLargestWhole = 9007199254740992.0;

template <typename Number>
bool IsOf(const Domain& domain) {
  const auto* choices = std::get_if<CategoricalDomain>(&domain);
  if (choices != nullptr) return std::holds_alternative<Number>(choices->choices.front());
  return std::holds_alternative<FloatDomain>(domain) == std::is_same_v<Number, double>;
}

ParamValue AsDomainType(const Domain& domain, const ParamValue& value) {
  const auto* whole = std::get_if<int64_t>(&value);
  if (whole != nullptr && IsOf<double>(domain)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value);
  const bool is_whole =
      real != nullptr && std::abs(*real) <= kLargestWhole && std::trunc(*real) == *real;
  if (is_whole && IsOf<int64_t>(domain)) return static_cast<int64_t>(*real);
  return value;
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

}  // namespace hpo
