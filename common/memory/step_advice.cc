#include "common/memory/step_advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory/allocation_trace.h"
#include "common/memory/described_step_trace.h"

namespace hpo {
namespace {

AllocatorOptions WithLimit(const StepDescription& step) {
  AllocatorOptions options = step.allocator;
  options.limit = std::max(Bytes{}, step.device.total - step.device.base);
  return options;
}

Bytes DeviceNeeded(const StepDescription& step) {
  return FindNeededLimit(TraceOfStep(step), step.allocator) + step.device.base;
}

// ---- Kinds of change: nullopt where one does not apply ----

std::optional<StepChange> FuseAttention(const StepDescription& step) {
  if (step.attention != AttentionKernel::kMath) return std::nullopt;
  StepChange change{.what = "fused attention", .step = step};
  const bool half = step.precision != StepPrecision::kFloat32;
  change.step.attention = half ? AttentionKernel::kFlash : AttentionKernel::kEfficient;
  return change;
}

std::optional<StepChange> FuseOptimizer(const StepDescription& step) {
  if (step.optimizer != StepOptimizer::kAdamForeach && step.optimizer != StepOptimizer::kAdamLoop) {
    return std::nullopt;
  }
  StepChange change{.what = "fused optimizer", .step = step};
  change.step.optimizer = StepOptimizer::kAdamFused;
  return change;
}

std::optional<StepChange> ExpandSegments(const StepDescription& step) {
  if (step.allocator.expandable_segments) return std::nullopt;
  StepChange change{.what = "expandable segments", .step = step};
  change.step.allocator.expandable_segments = true;
  return change;
}

// The step in parts of `micro_batch` rows, its effective batch kept.
StepDescription InParts(const StepDescription& step, int64_t micro_batch) {
  StepDescription parts = step;
  parts.batch = micro_batch;
  parts.accumulation = (step.batch * step.accumulation + micro_batch - 1) / micro_batch;
  return parts;
}

// The largest micro-batch below step.batch that fits at the same effective batch, else 1.
int64_t LargestMicroBatch(const StepDescription& step) {
  int64_t fits = 1;
  int64_t too_large = step.batch;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (StepFits(InParts(step, middle)) ? fits : too_large) = middle;
  }
  return fits;
}

std::string DescribeParts(const StepDescription& step) {
  return absl::StrCat("micro-batch ", step.batch, " in ", step.accumulation,
                      step.accumulation == 1 ? " part" : " parts");
}

std::optional<StepChange> SplitBatch(const StepDescription& step) {
  if (step.batch == 1) return std::nullopt;
  StepChange change{.cost = "the same gradients from more, smaller passes",
                    .step = InParts(step, LargestMicroBatch(step))};
  change.what = DescribeParts(change.step);
  return change;
}

std::optional<StepChange> Checkpoint(const StepDescription& step) {
  StepChange change{
      .what = "gradient checkpointing", .cost = "a second forward of every layer", .step = step};
  bool changed = false;
  for (DescribedLayer& layer : change.step.layers) {
    auto* encoder = std::get_if<EncoderLayers>(&layer);
    if (encoder == nullptr || encoder->checkpointing) continue;
    encoder->checkpointing = true;
    changed = true;
  }
  if (change.step.model.has_value() && !change.step.model->techniques.checkpointing) {
    change.step.model->techniques.checkpointing = true;
    changed = true;
  }
  if (!changed) return std::nullopt;
  return change;
}

std::optional<StepChange> UseAutocast(const StepDescription& step) {
  if (step.precision != StepPrecision::kFloat32) return std::nullopt;
  StepChange change{
      .what = "16-bit products (autocast)", .cost = "rounding; it is faster", .step = step};
  change.step.precision = StepPrecision::kAutocast;
  if (step.attention == AttentionKernel::kEfficient) {
    change.step.attention = AttentionKernel::kFlash;
  }
  return change;
}

// Checkpointing or lower precision may leave room for a larger micro-batch than was chosen before.
void GrowBatch(const StepDescription& original, StepChange& change) {
  StepDescription whole = change.step;
  whole.batch = original.batch;
  whole.accumulation = original.accumulation;
  const StepDescription grown = StepFits(whole) ? whole : InParts(whole, LargestMicroBatch(whole));
  if (grown.batch <= change.step.batch) return;
  change.step = grown;
  absl::StrAppend(&change.what, ", ", DescribeParts(grown));
  change.device_needed = DeviceNeeded(grown);
}

}  // namespace

bool StepFits(const StepDescription& step) {
  if (step.device.total < step.device.base) return false;
  return Replay(TraceOfStep(step), WithLimit(step)).completed;
}

std::optional<int64_t> LargestBatch(const StepDescription& step) {
  if (StepFits(step)) return step.batch;
  StepDescription tried = step;
  int64_t fits = 0;
  int64_t too_large = step.batch;
  while (too_large - fits > 1) {
    tried.batch = fits + (too_large - fits) / 2;
    (StepFits(tried) ? fits : too_large) = tried.batch;
  }
  if (fits == 0) return std::nullopt;
  return fits;
}

std::vector<StepChange> CheapestChanges(const StepDescription& step) {
  std::vector<StepChange> changes;
  if (StepFits(step)) return changes;
  StepDescription current = step;
  Bytes needed = DeviceNeeded(step);
  for (const auto kind :
       {FuseAttention, FuseOptimizer, ExpandSegments, SplitBatch, Checkpoint, UseAutocast}) {
    std::optional<StepChange> change = kind(current);
    if (!change.has_value()) continue;
    change->device_needed = DeviceNeeded(change->step);
    if (change->device_needed >= needed) continue;
    needed = change->device_needed;
    current = change->step;
    changes.push_back(*std::move(change));
    if (StepFits(current)) break;
  }
  if (!changes.empty() && StepFits(current)) GrowBatch(step, changes.back());
  return changes;
}

}  // namespace hpo
