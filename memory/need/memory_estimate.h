// How much memory a training configuration needs, by the tensors of its largest batch.
// memory_replay.h answers the same exactly.
//
// Pure and deterministic; about 0.1 ms per call (-O1); safe from any thread.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/protocol/worker_facts.h"
#include "memory/trace/estimate_input.h"
#include "memory/trace/kernel_traits.h"

namespace hpo::memory {

// Bytes by class at the peak: weights, gradients, optimizer, activations and head add up to
// `live_peak`, what our trainer's counting allocator would report as its peak, what it held before
// the trial left out. Reserved peaks add what the caching allocator holds on top, and workspaces.
// The same passes may come in several orders (CachedReplay). What is `expected` is of the order
// that our trainer runs, to be held against what a run reports: `expected_live_peak` is the
// tensors' as the device's allocator counts them, with what it does not split off. `reserved_peak`
// is the largest of the orders that a configuration may run in, a bound, as `needed_limit` is: the
// smallest budget of the device at which the plan runs in each of them, base included. Bounds admit
// and refuse. On a CPU all five are equal.
struct MemoryEstimate {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // saved for backward, the largest temporary, and the batch
  Bytes head;         // its weights, gradients and optimizer state
  Bytes workspaces;
  Bytes base;
  Bytes live_peak;
  Bytes expected_live_peak;
  Bytes expected_reserved_peak;
  Bytes reserved_peak;
  Bytes needed_limit;
  std::string peak_phase;  // "training" (forward and backward) or "evaluation"
  // What the allocator reserves depends on details that no estimate knows, by more than 3 %.
  bool fragile = false;
  bool operator==(const MemoryEstimate&) const = default;

  // Where tensors alone count.
  void SetPeaksToLive() {
    expected_live_peak = expected_reserved_peak = reserved_peak = needed_limit = live_peak;
  }
};

// What a configuration needs on a worker, and whether it fits there: the answer to a MemoryQuery
// (common/protocol/study_exchange.h).
struct MemoryAnswer {
  MemoryEstimate estimate;
  MemoryPlan plan;
  bool fits = false;
  Bytes usable;
  std::string explanation;
};

// Whether the sizes of `input` and `plan` are ones that a model may have.
//   InvalidArgument, Unimplemented  as EstimateMemory
absl::Status CheckEstimateInput(const EstimateInput& input, const MemoryPlan& plan);

// How `device` runs a trial's operations.
KernelTraits TraitsOf(const DeviceProfile& device);

// Of the workload's longest batch, by the trace of three layers (layered_peak.h). On a CPU an upper
// bound that is close: never less than what a run uses. On a card reserved peaks and needed limit
// are ratios of the tensors, which some trials exceed, and nothing is decided by them
// (EstimateWithin replays). A plan that recomputes layers or runs in 16 bits, or a model of which a
// part is frozen, is traced whole, about a millisecond. A histogram bounds the rows of a batch too;
// an empty one counts as rows enough, all of them tok.max_length long. What is beyond 1 EiB is
// 1 EiB of activations.
//   InvalidArgument  a shape, size or plan that is not positive or beyond what any model has, or as
//                    CheckTrainedParts; names it
//   Unimplemented    a model that our trainer does not run
absl::StatusOr<MemoryEstimate> EstimateMemory(const EstimateInput& input, const MemoryPlan& plan);

// Between what a replay's needed limit on a card is, where EstimateMemory says `formula`: wide, as
// no replay of 20,000 random trials of every family and technique is outside or near its ends
// (tests/memory/need_range_test.cc). For surveys, and for where to begin to search.
struct NeedRange {
  Bytes least;
  Bytes most;
  bool operator==(const NeedRange&) const = default;
};
NeedRange NeedRangeOf(const MemoryEstimate& formula);

}  // namespace hpo::memory
