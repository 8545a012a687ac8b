// How much memory a training configuration needs: DESIGN decision 1, stage B (exact replay).
// The trial's allocation trace is generated and its highest point found: on a CPU what the
// trainer's counting allocator will report, to the byte, where the batches are known.
//
// Pure and deterministic; safe from any thread. 24 layers in two parts: 1.2 ms (2 busy cores, -O1).
#pragma once

#include "absl/status/statusor.h"
#include "common/memory/bert_trace.h"
#include "common/memory/memory_estimate.h"

namespace hpo {

// The classifier that `input` describes.
BertClassifierShape ClassifierShapeOf(const EstimateInput& input);

// The estimate for these passes, which a CPU's can be given, or for the largest. Its classes add up
// to `live_peak` as those of EstimateMemory do, and it is never above that; `peak_phase` is that of
// TraceBertTrial. On a GPU reserved peak and needed limit are the caching allocator's, the largest
// over the orders that a run may take (cached_replay.h): some milliseconds.
//   InvalidArgument  as EstimateMemory
//   Unimplemented    given passes on a device that is not a CPU, or of a model that our trainer
//   does
//                    not run
absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan,
                                            const TrialPasses& passes);
absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan);

// Whether the plan fits `limit`, as quickly as may be: EstimateMemory, which is an upper bound; on
// a CPU, where that is above the limit by no more than it may be too high, ReplayMemory. So a CPU
// refuses nothing that fits, and clear cases cost microseconds. A GPU decides by the bound alone: a
// replay for each candidate would take milliseconds.
//   InvalidArgument  as EstimateMemory
absl::StatusOr<MemoryEstimate> EstimateWithin(const EstimateInput& input, const MemoryPlan& plan,
                                              Bytes limit);

}  // namespace hpo
