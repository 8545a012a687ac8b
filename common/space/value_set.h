// The values of a domain, for many questions about one: choices are looked up, not gone through.
#pragma once

#include <set>
#include <variant>

#include "common/space/search_space.h"

namespace hpo {

class ValueSet {
 public:
  // `domain` outlives it. Takes n log n for n choices.
  explicit ValueSet(const Domain& domain) : domain_(domain) {
    if (const auto* held = std::get_if<CategoricalDomain>(&domain)) {
      choices_.insert(held->choices.begin(), held->choices.end());
    }
  }

  // As Contains() of search_space.h.
  bool Has(const ParamValue& value) const {
    if (!std::holds_alternative<CategoricalDomain>(domain_)) return Contains(domain_, value);
    return choices_.contains(value);
  }

 private:
  const Domain& domain_;
  std::set<ParamValue> choices_;
};

}  // namespace hpo
