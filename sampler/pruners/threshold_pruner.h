// Stops a trial whose value leaves fixed limits.
#pragma once

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// Threads: as Pruner.
class ThresholdPruner final : public Pruner {
 public:
  // `spec.lower` and `spec.upper` are in the metric's own unit, whatever its direction.
  ThresholdPruner(const PrunerSpec& spec, Direction direction)
      : spec_(spec), direction_(direction) {}

  // Decides at check points only (sampler/pruners/reports.h): stops when the last value is NaN,
  // below lower or above upper. A value at a limit is within.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  PrunerSpec spec_;
  Direction direction_;
};

}  // namespace hpo::sampler
