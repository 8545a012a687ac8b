// Chooses another micro-batch from what a trial has shown to need, by replays. Free of torch.
//
// The estimate is corrected by one constant: by how much what was seen exceeds what was predicted,
// the most of all observations. An error that grows with the micro-batch is so bounded from above
// for every smaller one.
#pragma once

#include <memory>
#include <optional>

#include "memory/need/replay_table.h"
#include "memory/plan/memory_plan.h"
#include "memory/trace/trial_passes.h"

namespace hpo::trainer {

// One trial's. Not thread-safe.
class Replanner {
 public:
  // `baseline`: live bytes before the trial, which its limit covers too. `limit`: what the trial
  // may use; 0: not known, and every smaller plan is half the one before. `may_checkpoint`: layers
  // may be computed again.
  Replanner(memory::EstimateInput input, Bytes baseline, Bytes limit, bool may_checkpoint);

  // Live bytes at the peak that the replay promises for `plan`, the baseline included; nullopt
  // where it has no answer.
  std::optional<Bytes> PredictedPeak(const MemoryPlan& plan) const;

  // The most that the allocator reserves for `plan` over `passes`, which are the trial's; nullopt
  // as above.
  std::optional<Bytes> PredictedReservedPeak(const MemoryPlan& plan,
                                             const memory::TrialPasses& passes) const;

  // Under `plan` as many live bytes were needed, or at least as many. Returns whether that exceeds
  // the prediction by more than kTolerance.
  bool Correct(const MemoryPlan& plan, Bytes seen);

  // Whether `plan` is within the limit by the corrected estimate; true where nothing is known.
  bool Fits(const MemoryPlan& plan) const;

  // A smaller plan than `plan`, which did not run: the largest that fits by the corrected estimate;
  // half, where none does or `plan` itself had to run by it; at most half, where a plan of this
  // function has already failed. At micro-batch 1, and where none fits, the same with layers
  // computed again, if they may be: the largest that so fits. nullopt where nothing is left.
  std::optional<MemoryPlan> Smaller(const MemoryPlan& plan);

  Bytes correction() const { return correction_; }

  // What a prediction may be short of by without being wrong: 1 %, and 64 KiB.
  static constexpr double kTolerance = 0.01;
  static constexpr Bytes kSmallTolerance = KiB(64);

 private:
  // `plan` with layers computed again, its micro-batch no larger: the largest that fits by the
  // corrected estimate. nullopt where they may not be, are already, or nothing fits.
  std::optional<MemoryPlan> Recomputing(const MemoryPlan& plan) const;

  memory::EstimateInput input_;
  std::unique_ptr<memory::ReplayTable> replays_;
  Bytes baseline_;
  Bytes limit_;
  bool may_checkpoint_;
  Bytes correction_;
  bool has_chosen_ = false;
};

}  // namespace hpo::trainer
