#include "memory/need/memory_replay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/allocator/allocation_timeline.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/cached_replay.h"
#include "memory/need/replay_table.h"
#include "memory/need/trial_trace.h"

namespace hpo::memory {
namespace {

// What oneDNN, which multiplies bfloat16 on a CPU, and float16 where it has instructions for that,
// takes for each thread during a product; at most 1.4 MB measured, by shapes and instruction set.
constexpr Bytes kProductScratch = KiB(1536);

// Tensors at their peak. The head's gradients come before all others.
MemoryEstimate EstimateOf(const ClassifierShape& shape, const AllocationTrace& trace,
                          const LivePeak& live, const KernelTraits& traits) {
  const auto bytes = [&live](MemoryClass memory_class) {
    return live.by_class[static_cast<size_t>(memory_class)];
  };
  const Bytes head = HeadParameterBytes(shape, traits);
  MemoryEstimate estimate;
  const Bytes head_gradients = std::min(head, bytes(MemoryClass::kGradients));
  estimate.weights = bytes(MemoryClass::kWeights) - head;
  const Bytes head_states = HeadStateBytes(shape, traits);
  estimate.optimizer = bytes(MemoryClass::kOptimizer) - head_states;
  estimate.gradients = bytes(MemoryClass::kGradients) - head_gradients;
  estimate.activations = bytes(MemoryClass::kActivations) + bytes(MemoryClass::kTemporary);
  estimate.head = head + head_states + head_gradients;
  estimate.live_peak = live.peak - bytes(MemoryClass::kWorkspaces);
  estimate.SetPeaksToLive();
  estimate.peak_phase = trace.PhaseOf(live.event);
  return estimate;
}

// As ReplayMemoryWithin.
MemoryEstimate ReplayOnGpu(const EstimateInput& input, const MemoryPlan& plan, Bytes limit) {
  const ClassifierShape shape = ClassifierShapeOf(input, plan);
  const KernelTraits traits = TraitsOf(input.device);
  const CachedReplay replay(input, plan, shape, traits);
  const std::optional<CachedBytes> need = replay.NeedWithin(limit - input.device.base);
  MemoryEstimate estimate = EstimateOf(shape, replay.trace(), replay.live_peak(), traits);
  estimate.workspaces = input.device.workspace;
  estimate.base = input.device.base;
  if (!need.has_value()) {
    estimate.needed_limit = limit + Bytes{1};
    return LimitedTo(estimate, limit);
  }
  estimate.expected_live_peak = need->expected_live_peak;
  estimate.expected_reserved_peak = need->expected_reserved_peak;
  estimate.reserved_peak = need->reserved_peak;
  estimate.needed_limit = need->needed_limit + estimate.base;
  estimate.fragile = need->fragile;
  return estimate;
}

MemoryEstimate ReplayWithin(const EstimateInput& input, const MemoryPlan& plan,
                            const MemoryEstimate& bound, Bytes limit) {
  if (!CanBeReplayed(bound.live_peak)) return LimitedTo(bound, limit);
  if (input.device.kind != "cpu") return ReplayOnGpu(input, plan, limit);
  return LimitedTo(TraceTensors(input, plan, LargestPasses(input, plan)), limit);
}

}  // namespace

bool CanBeReplayed(Bytes live_peak) { return live_peak.count < kLargestTensorBytes; }

MemoryEstimate TraceTensors(const EstimateInput& input, const MemoryPlan& plan,
                            const TrialPasses& passes) {
  const ClassifierShape shape = ClassifierShapeOf(input, plan);
  const KernelTraits traits = TraitsOf(input.device);
  const AllocationTrace trace = TraceTrial(shape, DecidingPasses(passes), traits);
  MemoryEstimate estimate =
      EstimateOf(shape, trace, FindLivePeak(trace, Bytes{traits.granularity}), traits);
  if (traits.cpu && shape.execution.precision != Precision::kFloat32) {
    const Bytes scratch{kProductScratch.count * traits.threads_with_buffers};
    estimate.activations += scratch;
    estimate.live_peak += scratch;
    estimate.SetPeaksToLive();
  }
  return estimate;
}

absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan,
                                            const TrialPasses& passes) {
  if (input.device.kind != "cpu") {
    return absl::UnimplementedError(
        absl::StrCat("replay of given passes: expected a cpu, got ", input.device.kind));
  }
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input, plan));
  return CanBeReplayed(bound.live_peak) ? TraceTensors(input, plan, passes) : bound;
}

MemoryEstimate LimitedTo(const MemoryEstimate& replayed, Bytes limit) {
  if (replayed.needed_limit <= limit) return replayed;
  MemoryEstimate tensors = replayed;
  tensors.expected_live_peak = tensors.live_peak;
  tensors.expected_reserved_peak = tensors.reserved_peak = tensors.live_peak;
  tensors.needed_limit = std::max(tensors.live_peak + tensors.base, limit + Bytes{1});
  tensors.fragile = false;
  return tensors;
}

absl::StatusOr<MemoryEstimate> ReplayMemoryWithin(const EstimateInput& input,
                                                  const MemoryPlan& plan, Bytes limit) {
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input, plan));
  return ReplayWithin(input, plan, bound, limit);
}

absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan) {
  return ReplayMemoryWithin(input, plan, kAnyLimit);
}

absl::StatusOr<MemoryEstimate> EstimateWithin(const EstimateInput& input, const MemoryPlan& plan,
                                              Bytes limit, ReplayTable* replays) {
  // A CPU's replay takes the same whatever the limit.
  Bytes within = limit;
  if (input.device.kind == "cpu") {
    HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input, plan));
    if (bound.needed_limit <= limit) return bound;
    within = kAnyLimit;
  }
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate replayed,
                       replays != nullptr ? replays->ReplayWithin(input, plan, within)
                                          : ReplayMemoryWithin(input, plan, within));
  return LimitedTo(replayed, limit);
}

}  // namespace hpo::memory
