// The configurations that trials have had, by the codes of what is modelled.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "sampler/api/history.h"
#include "sampler/space/coded_space.h"

namespace hpo::sampler {

// Safe to share between threads.
class TriedCells {
 public:
  // `space` must outlive this object.
  TriedCells(const CodedSpace& space, const std::vector<Codes>& tried);
  // Trials in any state; those that miss a parameter of the space are no part of it.
  TriedCells(const CodedSpace& space, const History& history);

  bool Contains(const Codes& codes) const { return cells_.contains(KeyOf(codes)); }

 private:
  // Without what is not modelled, and without NaN, which has no order.
  Codes KeyOf(Codes codes) const;

  const CodedSpace* space_;
  std::set<Codes> cells_;
};

// The configurations of a space of at most 4,096 that `tried` lacks, each with what is not modelled
// drawn for it; of more than `most` so many, drawn evenly, in no order. nullopt where the space has
// more, or values that cannot be counted. Milliseconds.
std::optional<std::vector<Codes>> UntriedOf(const CodedSpace& space, const TriedCells& tried,
                                            size_t most, Rng& rng);

}  // namespace hpo::sampler
