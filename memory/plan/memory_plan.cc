#include "memory/plan/memory_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "memory/need/memory_replay.h"

namespace hpo::memory {
namespace {

class PlanSearch {
 public:
  // Among `plan` and those with another micro-batch.
  PlanSearch(const EstimateInput& input, const MemoryPlan& plan, Bytes limit, ReplayTable* replays)
      : input_(input), plan_(plan), limit_(limit), replays_(replays) {}

  absl::StatusOr<PlannedMemory> Evaluate(int64_t micro_batch) const {
    PlannedMemory planned;
    planned.plan = PlanOf(micro_batch);
    HPO_ASSIGN_OR_RETURN(planned.estimate, EstimateWithin(input_, planned.plan, limit_, replays_));
    planned.fits = planned.estimate.needed_limit <= limit_;
    return planned;
  }

  // The largest micro-batch below `too_large` that fits, else 1. The estimate grows with m as long
  // as the batch has several parts, which it has for every m < too_large; but with two parts the
  // second gets smaller as the first gets larger, and segments come in pieces. Then this is one
  // that fits, while the next larger one does not.
  absl::StatusOr<PlannedMemory> LargestBelow(int64_t too_large) const {
    std::optional<PlannedMemory> best;
    double share = input_.device.kind == "cpu" ? 1.0 : kUsualShare;
    double more = kMore;
    for (;;) {
      const int64_t fitting = best.has_value() ? best->plan.micro_batch : 0;
      HPO_ASSIGN_OR_RETURN(const int64_t next, Guess(fitting, too_large, share));
      HPO_ASSIGN_OR_RETURN(PlannedMemory tried, Evaluate(next));
      if (tried.fits) {
        HPO_ASSIGN_OR_RETURN(share, ShareOf(tried));
        more = kMore;
        best = std::move(tried);
      } else {
        if (next == 1) return tried;
        too_large = next;
        share *= more;
        more *= more;
      }
      if (best.has_value() && best->plan.micro_batch + 1 >= too_large) return *std::move(best);
    }
  }

 private:
  // Of what EstimateMemory says, what a replay on a GPU usually needs; and by what it is raised,
  // the more the more often, where that was too little.
  static constexpr double kUsualShare = 0.75;
  static constexpr double kMore = 1.02;

  MemoryPlan PlanOf(int64_t micro_batch) const {
    MemoryPlan plan = plan_;
    plan.micro_batch = micro_batch;
    return plan;
  }

  absl::StatusOr<double> ShareOf(const PlannedMemory& planned) const {
    HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input_, planned.plan));
    return static_cast<double>(planned.estimate.needed_limit.count) /
           static_cast<double>(bound.needed_limit.count);
  }

  // Between the two, the largest of which `share` of the formula is within the limit: that costs
  // microseconds, a replay milliseconds. It decides what is tried next, and nothing else.
  absl::StatusOr<int64_t> Guess(int64_t fits, int64_t too_large, double share) const {
    const auto limit = static_cast<double>(limit_.count);
    int64_t guess = fits + 1;
    while (too_large - guess > 1) {
      const int64_t middle = guess + (too_large - guess) / 2;
      HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input_, PlanOf(middle)));
      const double need = share * static_cast<double>(bound.needed_limit.count);
      (need <= limit ? guess : too_large) = middle;
    }
    return guess;
  }

  const EstimateInput& input_;
  const MemoryPlan plan_;
  const Bytes limit_;
  ReplayTable* const replays_;
};

// How a batch may be run other than at its word, the cheapest first: in smaller parts, then with
// layers computed again, then in 16 bits.
std::vector<MemoryPlan> Ladder(const TrainingConfig& config, const MemorySpec& memory) {
  std::vector<MemoryPlan> rungs = {LiteralPlan(config)};
  if (memory.allow_checkpointing && !rungs.back().checkpointing) {
    rungs.push_back(rungs.back());
    rungs.back().checkpointing = true;
  }
  if (memory.allow_lower_precision && rungs.back().precision == Precision::kFloat32) {
    rungs.push_back(rungs.back());
    rungs.back().precision = Precision::kBfloat16;
  }
  return rungs;
}

}  // namespace

absl::StatusOr<PlannedMemory> PlanBelow(const EstimateInput& input, const MemoryPlan& plan,
                                        Bytes limit, ReplayTable* replays) {
  return PlanSearch(input, plan, limit, replays).LargestBelow(plan.micro_batch);
}

MemoryPlan LiteralPlan(const TrainingConfig& config) {
  MemoryPlan plan;
  plan.effective_batch = config.EffectiveBatch();
  plan.micro_batch = config.batch_size;
  plan.checkpointing = config.checkpoint_every > 0;
  plan.precision = config.precision;
  return plan;
}

MemoryPlan StartingPlan(const TrainingConfig& config, const MemoryPlan& given,
                        MemoryPolicy policy) {
  MemoryPlan plan = LiteralPlan(config);
  const bool fitting = given.effective_batch == plan.effective_batch && given.micro_batch >= 1 &&
                       given.micro_batch <= plan.effective_batch;
  if (!fitting || policy == MemoryPolicy::kStrict) return plan;
  plan.micro_batch = given.micro_batch;
  plan.checkpointing = plan.checkpointing || given.checkpointing;
  if (plan.precision == Precision::kFloat32) plan.precision = given.precision;
  return plan;
}

absl::StatusOr<PlannedMemory> PlanMemory(const EstimateInput& input, const MemorySpec& memory,
                                         Bytes limit, ReplayTable* replays) {
  const bool literally = memory.policy != MemoryPolicy::kPlan;
  PlannedMemory planned;
  for (const MemoryPlan& rung : Ladder(input.config, memory)) {
    const PlanSearch search(input, rung, limit, replays);
    HPO_ASSIGN_OR_RETURN(planned, search.Evaluate(rung.micro_batch));
    if (memory.policy == MemoryPolicy::kOff) planned.fits = true;
    if (planned.fits || literally) return planned;
    if (rung.micro_batch == 1) continue;
    HPO_ASSIGN_OR_RETURN(planned, search.LargestBelow(rung.micro_batch));
    if (planned.fits) return planned;
  }
  return planned;
}

std::optional<MemoryPlan> SmallerPlan(const MemoryPlan& plan) {
  if (plan.micro_batch <= 1) return std::nullopt;
  MemoryPlan smaller = plan;
  smaller.micro_batch = std::max<int64_t>(1, plan.micro_batch / 2);
  return smaller;
}

std::vector<int64_t> PartSizes(const MemoryPlan& plan, int64_t rows_in_batch) {
  std::vector<int64_t> sizes;
  for (int64_t left = rows_in_batch; left > 0; left -= sizes.back()) {
    sizes.push_back(std::min(left, std::max<int64_t>(1, plan.micro_batch)));
  }
  return sizes;
}

}  // namespace hpo::memory
