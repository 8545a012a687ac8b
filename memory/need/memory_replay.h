// How much memory a training configuration needs, exactly: by replay.
// The trial's allocation trace is generated and its highest point found: on a CPU what the
// trainer's counting allocator will report, to the byte, where the batches are known.
//
// Pure and deterministic; safe from any thread. 24 layers in two parts: 1.2 ms (2 busy cores, -O1).
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "memory/need/memory_estimate.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {

constexpr Bytes kAnyLimit{INT64_MAX};

class ReplayTable;

// Whether tensors that take so much at their peak are few enough to be replayed (16 TiB).
bool CanBeReplayed(Bytes live_peak);

// Tensors at their peak over `passes`, by class: to the byte on a CPU, but an upper bound in
// bfloat16 and float16, where oneDNN takes scratch by rules of its own. Base, workspaces and the
// allocator's share are left out. The input is valid (CheckEstimateInput), and no sum of its
// tensors overflows.
MemoryEstimate TraceTensors(const EstimateInput& input, const MemoryPlan& plan,
                            const TrialPasses& passes);

// The estimate for these passes, which a CPU's can be given, or for the largest. Its classes add up
// to `live_peak` as those of EstimateMemory do, and it is never above that; `peak_phase` is that of
// TraceTrial. On a GPU reserved peaks and needed limit are the caching allocator's: the expected
// one in the order that our trainer runs, the other two over every order that a run may take
// (cached_replay.h): some milliseconds. What cannot be replayed keeps EstimateMemory.
//   InvalidArgument, Unimplemented  as EstimateMemory
//   Unimplemented                   given passes on a device that is not a CPU
absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan,
                                            const TrialPasses& passes);
absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan);

// What is said of an estimate of ReplayMemory within `limit`: all of it where its need is; else its
// tensors, with a needed limit that is above `limit` and no more than the need.
MemoryEstimate LimitedTo(const MemoryEstimate& replayed, Bytes limit);

// LimitedTo of ReplayMemory, which on a GPU takes less where the need is above `limit`: the least
// where the tensors are.
absl::StatusOr<MemoryEstimate> ReplayMemoryWithin(const EstimateInput& input,
                                                  const MemoryPlan& plan, Bytes limit);

// Whether and how a plan runs within `limit`: ReplayMemoryWithin, and no formula in its place. But
// on a CPU EstimateMemory, an upper bound there, where that is within the limit. `replays`, where
// given, is asked for replays.
//   InvalidArgument, Unimplemented  as EstimateMemory
absl::StatusOr<MemoryEstimate> EstimateWithin(const EstimateInput& input, const MemoryPlan& plan,
                                              Bytes limit, ReplayTable* replays = nullptr);

}  // namespace hpo::memory
