// Lets another pruner decide only once a trial has stopped to improve.
#pragma once

#include <memory>

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// Threads: as Pruner.
class PatientPruner final : public Pruner {
 public:
  // `wrapped` nullptr: patience alone decides.
  PatientPruner(const PrunerSpec& spec, Direction direction, std::unique_ptr<const Pruner> wrapped)
      : spec_(spec), direction_(direction), wrapped_(std::move(wrapped)) {}

  // Of a trial with more than patience + 1 reports: when the best of the last patience + 1 is worse
  // than the best before them by more than min_delta (NaN ignored on both sides; nothing but NaN on
  // one is not worse), what the wrapped pruner says, or stop without one. By epoch its values at
  // check points are its reports.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  PrunerSpec spec_;
  Direction direction_;
  std::unique_ptr<const Pruner> wrapped_;
};

}  // namespace hpo::sampler
