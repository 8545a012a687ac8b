// Asynchronous successive halving over all trials of a study
// (sampler/pruners/successive_halving.h).
#pragma once

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// Threads: as Pruner.
class AshaPruner final : public Pruner {
 public:
  AshaPruner(const PrunerSpec& spec, Direction direction) : spec_(spec), direction_(direction) {}

  // With min_resource nullopt, rungs start at max(1, a hundredth of the longest completed trial's
  // last step), and nothing is stopped before a trial has completed.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  PrunerSpec spec_;
  Direction direction_;
};

}  // namespace hpo::sampler
