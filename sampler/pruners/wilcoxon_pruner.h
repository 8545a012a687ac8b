// Stops a trial that a signed-rank test finds worse than the best completed one, step by step. For
// objectives that are means over steps, such as the folds of a cross-validation.
#pragma once

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// Threads: as Pruner.
class WilcoxonPruner final : public Pruner {
 public:
  WilcoxonPruner(const PrunerSpec& spec, Direction direction)
      : spec_(spec), direction_(direction) {}

  // Pairs the trial's values with those of the completed trial of the best objective (of equal
  // ones the first) at common steps, and stops when there are at least max(2, startup_steps) pairs,
  // the one-sided test (sampler/pruners/signed_rank.h) gives p < p_threshold, and the mean of the
  // trial's values is worse than the mean of the best one's. A value of either that is not finite:
  // goes on. By epoch the values at check points are paired.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  PrunerSpec spec_;
  Direction direction_;
};

}  // namespace hpo::sampler
