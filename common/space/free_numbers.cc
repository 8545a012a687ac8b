#include "common/space/free_numbers.h"

#include <variant>

namespace hpo {
namespace {

bool IsSearched(const Parameter& parameter) {
  return parameter.modelled && NumValues(parameter.domain) != 1;
}

}  // namespace

bool IsFreeNumber(const Parameter& parameter) {
  return IsSearched(parameter) && parameter.when.empty() &&
         !std::holds_alternative<CategoricalDomain>(parameter.domain);
}

const Parameter* FirstNotFreeNumber(const SearchSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    if (IsSearched(parameter) && !IsFreeNumber(parameter)) return &parameter;
  }
  return nullptr;
}

}  // namespace hpo
