#include "sampler/space/modelled_part.h"

#include <algorithm>

#include "absl/hash/hash.h"

namespace hpo::sampler {

ModelledPart::ModelledPart(const SearchSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    if (!parameter.modelled) left_out_.insert(parameter.name);
  }
}

bool ModelledPart::Same(const ParamMap& a, const ParamMap& b) const {
  if (left_out_.empty()) return a == b;
  auto in_a = a.begin();
  auto in_b = b.begin();
  for (;; ++in_a, ++in_b) {
    while (in_a != a.end() && left_out_.contains(in_a->first)) ++in_a;
    while (in_b != b.end() && left_out_.contains(in_b->first)) ++in_b;
    if (in_a == a.end() || in_b == b.end()) return in_a == a.end() && in_b == b.end();
    if (*in_a != *in_b) return false;
  }
}

size_t ModelledPart::Hash(const ParamMap& params) const {
  if (left_out_.empty()) return absl::HashOf(params);
  size_t hash = 0;
  for (const auto& [name, value] : params) {
    if (!left_out_.contains(name)) hash = absl::HashOf(hash, name, value);
  }
  return hash;
}

bool Tried(const History& history, const ModelledPart& part, const ParamMap& params) {
  return std::any_of(history.trials().begin(), history.trials().end(),
                     [&](const auto& entry) { return part.Same(entry.second.params, params); });
}

}  // namespace hpo::sampler
