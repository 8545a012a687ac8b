#include "worker/trainer/memory/replanner.h"

#include <algorithm>
#include <utility>

#include "memory/need/memory_replay.h"
#include "memory/need/ordered_replay.h"

namespace hpo::trainer {

Replanner::Replanner(memory::EstimateInput input, Bytes baseline, Bytes limit, bool may_checkpoint)
    : input_(std::move(input)),
      replays_(std::make_unique<memory::ReplayTable>()),
      baseline_(baseline),
      limit_(limit),
      may_checkpoint_(may_checkpoint) {
  // On a card the estimate counts the baseline itself: as workspaces.
  if (limit > Bytes{} && input_.device.kind == "cpu") limit_ = std::max(Bytes{1}, limit - baseline);
}

std::optional<Bytes> Replanner::PredictedPeak(const MemoryPlan& plan) const {
  const auto estimate = replays_->Replay(input_, plan);
  if (!estimate.ok()) return std::nullopt;
  return estimate->expected_live_peak + baseline_;
}

std::optional<Bytes> Replanner::PredictedReservedPeak(const MemoryPlan& plan,
                                                      const memory::TrialPasses& passes) const {
  if (const auto ordered = memory::ReplayReservedPeak(input_, plan, passes); ordered.ok())
    return *ordered;
  const auto estimate = replays_->Replay(input_, plan);
  if (!estimate.ok()) return std::nullopt;
  return input_.device.kind == "cpu" ? estimate->reserved_peak + baseline_
                                     : estimate->reserved_peak;
}

bool Replanner::Correct(const MemoryPlan& plan, Bytes seen) {
  const std::optional<Bytes> predicted = PredictedPeak(plan);
  if (!predicted.has_value()) return false;
  const Bytes excess = seen - *predicted;
  correction_ = std::max(correction_, excess);
  const Bytes share{static_cast<int64_t>(static_cast<double>(predicted->count) * kTolerance)};
  return excess > std::max(share, kSmallTolerance);
}

bool Replanner::Fits(const MemoryPlan& plan) const {
  const auto estimate = memory::EstimateWithin(input_, plan, limit_ - correction_, replays_.get());
  if (!estimate.ok() || limit_ == Bytes{}) return true;
  return estimate->needed_limit + correction_ <= limit_;
}

std::optional<MemoryPlan> Replanner::Smaller(const MemoryPlan& plan) {
  const std::optional<MemoryPlan> half = memory::SmallerPlan(plan);
  if (!half.has_value()) return Recomputing(plan);
  if (limit_ == Bytes{} || Fits(plan)) return half;
  const auto fitting = memory::PlanBelow(input_, plan, limit_ - correction_, replays_.get());
  if (!fitting.ok()) return half;
  if (!fitting->fits) {
    const std::optional<MemoryPlan> recomputing = Recomputing(plan);
    has_chosen_ = has_chosen_ || recomputing.has_value();
    return recomputing.has_value() ? recomputing : half;
  }
  MemoryPlan chosen = plan;
  chosen.micro_batch = fitting->plan.micro_batch;
  if (std::exchange(has_chosen_, true)) {
    chosen.micro_batch = std::min(chosen.micro_batch, half->micro_batch);
  }
  return chosen;
}

std::optional<MemoryPlan> Replanner::Recomputing(const MemoryPlan& plan) const {
  if (!may_checkpoint_ || plan.checkpointing) return std::nullopt;
  MemoryPlan chosen = plan;
  chosen.checkpointing = true;
  // Nothing is lost by trying one row, whatever the estimate says of it.
  if (plan.micro_batch == 1) return chosen;
  ++chosen.micro_batch;
  const auto fitting = memory::PlanBelow(input_, chosen, limit_ - correction_, replays_.get());
  if (!fitting.ok() || !fitting->fits) return std::nullopt;
  return fitting->plan;
}

}  // namespace hpo::trainer
