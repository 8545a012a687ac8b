// Tested by tests/memory/described_step_test.cc.
#include "memory/offline/step_advice.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "memory/allocator/allocation_trace.h"
#include "memory/offline/described_step_trace.h"
#include "memory/plan/cheapest_changes.h"
#include "memory/plan/largest_fitting.h"

namespace hpo::memory {
namespace {

constexpr Bytes kAllocationUnit{512};

// The largest need of the step's orders, base included.
Bytes DeviceNeeded(const StepDescription& step, const std::vector<AllocationTrace>& orders) {
  Bytes needed;
  for (const AllocationTrace& trace : orders) {
    needed = std::max(needed, FindNeededLimit(trace, step.allocator));
  }
  return needed + step.device.base;
}

// Whether each completes within the device's total less its base.
bool AllComplete(const StepDescription& step, const std::vector<AllocationTrace>& orders) {
  AllocatorOptions options = step.allocator;
  options.card.left = step.device.total - step.device.base;
  return options.card.left >= Bytes{} &&
         std::all_of(orders.begin(), orders.end(), [&options](const AllocationTrace& trace) {
           return Replay(trace, options).completed;
         });
}

// ---- Kinds of change: nullopt where one does not apply ----

std::optional<StepDescription> FuseAttention(const StepDescription& step) {
  if (step.attention != AttentionKernel::kMath) return std::nullopt;
  StepDescription changed = step;
  const bool half = step.precision != StepPrecision::kFloat32;
  changed.attention = half ? AttentionKernel::kFlash : AttentionKernel::kEfficient;
  return changed;
}

std::optional<StepDescription> FuseOptimizer(const StepDescription& step) {
  if (step.optimizer != StepOptimizer::kAdamForeach && step.optimizer != StepOptimizer::kAdamLoop) {
    return std::nullopt;
  }
  StepDescription changed = step;
  changed.optimizer = StepOptimizer::kAdamFused;
  return changed;
}

std::optional<StepDescription> ExpandSegments(const StepDescription& step) {
  if (step.allocator.expandable_segments) return std::nullopt;
  StepDescription changed = step;
  changed.allocator.expandable_segments = true;
  return changed;
}

// The step in parts of `micro_batch` rows, its effective batch kept.
StepDescription InParts(const StepDescription& step, int64_t micro_batch) {
  StepDescription parts = step;
  parts.batch = micro_batch;
  parts.accumulation = (step.batch * step.accumulation + micro_batch - 1) / micro_batch;
  return parts;
}

std::optional<StepDescription> Checkpoint(const StepDescription& step) {
  StepDescription changed = step;
  bool is_new = false;
  for (DescribedLayer& layer : changed.layers) {
    auto* encoder = std::get_if<EncoderLayers>(&layer);
    if (encoder == nullptr || encoder->checkpointing) continue;
    is_new = encoder->checkpointing = true;
  }
  if (changed.model.has_value() && !changed.model->techniques.checkpointing) {
    is_new = changed.model->techniques.checkpointing = true;
  }
  if (!is_new) return std::nullopt;
  return changed;
}

// Beneath adapters.
std::optional<StepDescription> QuantizeBase(const StepDescription& step) {
  if (!step.model.has_value() || !step.model->techniques.lora.has_value()) return std::nullopt;
  if (step.model->techniques.lora->base == FrozenStorage::Type::kNf4) return std::nullopt;
  StepDescription changed = step;
  changed.model->techniques.lora->base = FrozenStorage::Type::kNf4;
  return changed;
}

std::optional<StepDescription> UseAutocast(const StepDescription& step) {
  if (step.precision != StepPrecision::kFloat32) return std::nullopt;
  StepDescription changed = step;
  changed.precision = StepPrecision::kAutocast;
  if (step.attention == AttentionKernel::kEfficient) changed.attention = AttentionKernel::kFlash;
  return changed;
}

ChangeNeed NeedOf(const StepDescription& step) {
  const Bytes needed = DeviceNeeded(step, TracesOfStep(step));
  return {.needed = needed,
          .fits = needed <= step.device.total,
          .micro_batch = step.batch,
          .num_parts = step.accumulation};
}

const std::vector<ChangeKind<StepDescription>>& Kinds() {
  static const auto& kinds = *new std::vector<ChangeKind<StepDescription>>{
      {"fused attention", "none", FuseAttention},
      {"fused optimizer", "none", FuseOptimizer},
      {"expandable segments", "none", ExpandSegments},
      {"gradient checkpointing", "a second forward of every layer", Checkpoint},
      {"frozen weights in NF4", "frozen weights are rounded to 4 bits", QuantizeBase},
      {"16-bit products (autocast)", "rounding; it is faster", UseAutocast}};
  return kinds;
}
constexpr size_t kFreeKinds = 3;

// The largest batch of which `make` makes a step that fits, by what it is said to need too.
std::optional<int64_t> Largest(int64_t most,
                               absl::FunctionRef<StepDescription(int64_t batch)> make) {
  const auto may_fit = [&make](int64_t batch) -> absl::StatusOr<bool> {
    const StepDescription step = make(batch);
    return FindLivePeak(TraceOfStep(step), kAllocationUnit).peak + step.device.base <=
           step.device.total;
  };
  const auto fits = [&make](int64_t batch) -> absl::StatusOr<bool> {
    const StepDescription step = make(batch);
    const std::vector<AllocationTrace> orders = TracesOfStep(step);
    return AllComplete(step, orders) && DeviceNeeded(step, orders) <= step.device.total;
  };
  const int64_t largest = *LargestFitting(most, may_fit, fits);
  if (largest == 0) return std::nullopt;
  return largest;
}

}  // namespace

std::optional<int64_t> LargestBatch(const StepDescription& step) {
  return Largest(step.batch, [&step](int64_t batch) {
    StepDescription tried = step;
    tried.batch = batch;
    return tried;
  });
}

StepDescription WithEveryChange(const StepDescription& step) {
  return WithEveryChange(Kinds(), step);
}

std::vector<StepChange> CheapestChanges(const StepDescription& step) {
  const ChangeProblem<StepDescription> problem{
      .kinds = Kinds(),
      .num_free = kFreeKinds,
      .judge = NeedOf,
      .split = [](const StepDescription& whole) -> absl::StatusOr<StepDescription> {
        const auto parts = [&whole](int64_t batch) { return InParts(whole, batch); };
        return parts(Largest(whole.batch - 1, parts).value_or(1));
      },
      .in_parts = InParts};
  const auto applied = ChangeSearch(problem, step).Run();
  HPO_CHECK(applied.ok());  // nothing of the problem fails
  std::vector<StepChange> changes;
  for (const auto& change : *applied) {
    changes.push_back({.what = change.what,
                       .cost = change.cost,
                       .step = change.config,
                       .device_needed = change.needed});
  }
  return changes;
}

}  // namespace hpo::memory
