// Chooses how a configuration is executed so that it fits: DESIGN decision 2.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/memory/memory_estimate.h"

namespace hpo {

class ReplayTable;

// A plan with the estimate it was chosen by.
struct PlannedMemory {
  MemoryPlan plan;
  MemoryEstimate estimate;
  bool fits = false;    // needed_limit, with the margin, <= limit
  double margin = 0.0;  // what calibration adds to the need, as a fraction of it
  bool operator==(const PlannedMemory&) const = default;
};

// The plan that takes the configuration at its word: micro-batch = train.batch_size.
MemoryPlan LiteralPlan(const TrainingConfig& config);

// policy kPlan: the largest micro-batch m <= train.batch_size that fits `limit`; where m = 1 does
// not fit, the plan with m = 1 and fits = false. kStrict: m = train.batch_size. kOff: as strict,
// fits = true. The estimate is EstimateWithin's; `replays`, where given, is asked for replays.
//   InvalidArgument  see EstimateMemory
absl::StatusOr<PlannedMemory> PlanMemory(const EstimateInput& input, const MemorySpec& memory,
                                         Bytes limit, ReplayTable* replays = nullptr);

// As kPlan, but below `micro_batch`, which is known to be too large. micro_batch > 1.
//   InvalidArgument  see EstimateMemory
absl::StatusOr<PlannedMemory> PlanBelow(const EstimateInput& input, int64_t micro_batch,
                                        Bytes limit, ReplayTable* replays = nullptr);

// The plan after an OOM where nothing better is known: micro-batch halved (rounded up to at least
// 1), effective batch kept. nullopt when the micro-batch is 1 already.
std::optional<MemoryPlan> SmallerPlan(const MemoryPlan& plan);

// Rows of each part of one effective batch: ceil(E/m) parts of m rows, the last one shorter.
std::vector<int64_t> PartSizes(const MemoryPlan& plan, int64_t rows_in_batch);

}  // namespace hpo
