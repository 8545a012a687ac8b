// Chooses how a configuration is executed so that it fits, at the effective batch that it states.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/need/memory_estimate.h"

namespace hpo::memory {

class ReplayTable;

// A plan with the estimate it was chosen by.
struct PlannedMemory {
  MemoryPlan plan;
  MemoryEstimate estimate;
  bool fits = false;    // needed_limit, with the margin, <= limit
  double margin = 0.0;  // what calibration adds to the need, as a fraction of it
  bool operator==(const PlannedMemory&) const = default;
};

// The plan that takes the configuration at its word: micro-batch = train.batch_size, its precision,
// and checkpointing where it asks for it.
MemoryPlan LiteralPlan(const TrainingConfig& config);

// The plan that a trainer starts with: `given`, where it is one for this configuration and the
// policy is not kStrict; else the literal one. A precision and checkpointing that the configuration
// asks for stay.
MemoryPlan StartingPlan(const TrainingConfig& config, const MemoryPlan& given, MemoryPolicy policy);

// policy kPlan: the largest micro-batch m <= train.batch_size that fits `limit`; where m = 1 does
// not fit, the same with layers computed again and then in bfloat16 too, as far as `memory` allows
// it; where nothing fits, the last plan with m = 1 and fits = false. kStrict: the plan at its word.
// kOff: as strict, fits = true. The estimate is EstimateWithin's; `replays`, where given, is asked
// for replays.
//   InvalidArgument  see EstimateMemory
absl::StatusOr<PlannedMemory> PlanMemory(const EstimateInput& input, const MemorySpec& memory,
                                         Bytes limit, ReplayTable* replays = nullptr);

// The largest micro-batch below that of `plan`, which is known to be too large (> 1), that fits,
// all else as in `plan`; m = 1 and fits = false where none does.
//   InvalidArgument  see EstimateMemory
absl::StatusOr<PlannedMemory> PlanBelow(const EstimateInput& input, const MemoryPlan& plan,
                                        Bytes limit, ReplayTable* replays = nullptr);

// The plan after an OOM where nothing better is known: micro-batch halved (rounded up to at least
// 1), effective batch kept. nullopt when the micro-batch is 1 already.
std::optional<MemoryPlan> SmallerPlan(const MemoryPlan& plan);

// Rows of each part of one effective batch: ceil(E/m) parts of m rows, the last one shorter.
std::vector<int64_t> PartSizes(const MemoryPlan& plan, int64_t rows_in_batch);

}  // namespace hpo::memory
