#include "common/memory/memory_plan.h"

#include <algorithm>
#include <utility>

#include "common/memory/memory_replay.h"
#include "common/status.h"

namespace hpo {
namespace {

absl::StatusOr<PlannedMemory> Evaluate(const EstimateInput& input, int64_t micro_batch,
                                       Bytes limit) {
  PlannedMemory planned;
  planned.plan = LiteralPlan(input.config);
  planned.plan.micro_batch = micro_batch;
  HPO_ASSIGN_OR_RETURN(planned.estimate, EstimateWithin(input, planned.plan, limit));
  planned.fits = planned.estimate.needed_limit <= limit;
  return planned;
}

}  // namespace

// By bisection: the estimate grows with m as long as the batch has several parts, which it has for
// every m < too_large; but with two parts the second gets smaller as the first gets larger. Then
// this is one that fits, while the next larger one does not.
absl::StatusOr<PlannedMemory> PlanBelow(const EstimateInput& input, int64_t too_large,
                                        Bytes limit) {
  HPO_ASSIGN_OR_RETURN(PlannedMemory best, Evaluate(input, 1, limit));
  if (!best.fits) return best;
  while (best.plan.micro_batch + 1 < too_large) {
    const int64_t middle = best.plan.micro_batch + (too_large - best.plan.micro_batch) / 2;
    HPO_ASSIGN_OR_RETURN(PlannedMemory tried, Evaluate(input, middle, limit));
    if (tried.fits) {
      best = std::move(tried);
    } else {
      too_large = middle;
    }
  }
  return best;
}

MemoryPlan LiteralPlan(const TrainingConfig& config) {
  MemoryPlan plan;
  plan.effective_batch = config.EffectiveBatch();
  plan.micro_batch = config.batch_size;
  return plan;
}

absl::StatusOr<PlannedMemory> PlanMemory(const EstimateInput& input, const MemorySpec& memory,
                                         Bytes limit) {
  HPO_ASSIGN_OR_RETURN(PlannedMemory whole, Evaluate(input, input.config.batch_size, limit));
  if (memory.policy == MemoryPolicy::kOff) whole.fits = true;
  if (whole.fits || memory.policy == MemoryPolicy::kStrict || input.config.batch_size == 1) {
    return whole;
  }
  return PlanBelow(input, input.config.batch_size, limit);
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

}  // namespace hpo
