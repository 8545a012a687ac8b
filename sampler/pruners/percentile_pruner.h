// Stops a trial whose best value so far is worse than a percentile of what completed trials had at
// the same step. The median pruner is the 50th.
// Source: Golovin et al. 2017 (Vizier), 3.2.2, with the semantics of Optuna 5.0
// (optuna/pruners/_percentile.py).
#pragma once

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// Threads: as Pruner.
class PercentilePruner final : public Pruner {
 public:
  // `spec.type` is median or percentile.
  PercentilePruner(const PrunerSpec& spec, Direction direction)
      : spec_(spec), direction_(direction) {}

  // Decides at the trial's last report, and only where
  //   - at least max(1, startup_trials) trials have completed,
  //   - it is to be judged there (PointToJudge, sampler/pruners/reports.h).
  // Stops when all the trial's values are NaN, or when the best of them (NaN ignored) is worse than
  // the percentile, linearly interpolated, of the completed trials' values at exactly this step
  // (NaN ignored). Equal is not worse; with fewer than min_trials values (NaN counted), or where
  // the percentile is none (only NaN; opposite infinities next to it), the trial goes on. By epoch
  // all values are those at check points.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  double LossPercentile(const std::vector<double>& losses) const;

  PrunerSpec spec_;
  Direction direction_;
};

}  // namespace hpo::sampler
