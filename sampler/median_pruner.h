// Stops a trial whose best value so far is worse than the median of what completed trials had at
// the same step.
// Source: Golovin et al. 2017 (Vizier), 3.2.2, with the semantics of shared/research/optuna.md 2.2.
#pragma once

#include "sampler/pruner.h"

namespace hpo {

// Threads: as Pruner.
class MedianPruner final : public Pruner {
 public:
  MedianPruner(const PrunerSpec& spec, Direction direction) : spec_(spec), direction_(direction) {}

  // Decides at the trial's last reported step t, and only where
  //   - at least max(1, startup_trials) trials have completed,
  //   - t >= warmup_steps, and t is the first report since the last check point, i.e. in
  //     [warmup + floor((t - warmup) / interval) * interval, t].
  // Stops when all the trial's values are NaN, or when the best of them (NaN ignored) is worse than
  // the median of the completed trials' values at exactly t (NaN ignored). Equal is not worse;
  // without such a median the trial goes on.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  bool IsCheckPoint(const HistoryTrial& trial) const;

  PrunerSpec spec_;
  Direction direction_;
};

}  // namespace hpo
