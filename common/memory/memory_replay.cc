#include "common/memory/memory_replay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory/allocation_timeline.h"
#include "common/memory/bert_timeline.h"
#include "common/status.h"

namespace hpo {
namespace {

// EstimateMemory is too high by no more than a twentieth, or for the smallest models by its
// allowances.
constexpr int64_t kLargestExcess = 20;
constexpr Bytes kSmallExcess = KiB(256);

bool HasTrace(const EstimateInput& input) {
  return input.device.kind == "cpu" && TrainerSupports(input.model);
}

// `head`: bytes of the head's parameters, whose gradients come before all others.
MemoryEstimate EstimateOf(const LivePeak& live, Bytes head) {
  const auto bytes = [&live](MemoryClass memory_class) {
    return live.by_class[static_cast<size_t>(memory_class)];
  };
  MemoryEstimate estimate;
  const Bytes head_gradients = std::min(head, bytes(MemoryClass::kGradients));
  estimate.weights = bytes(MemoryClass::kWeights) - head;
  estimate.optimizer = bytes(MemoryClass::kOptimizer) - 2 * head;
  estimate.gradients = bytes(MemoryClass::kGradients) - head_gradients;
  estimate.activations = bytes(MemoryClass::kActivations) + bytes(MemoryClass::kTemporary);
  estimate.head = 3 * head + head_gradients;
  estimate.live_peak = estimate.reserved_peak = estimate.needed_limit = live.peak;
  return estimate;
}

}  // namespace

BertClassifierShape ClassifierShapeOf(const EstimateInput& input) {
  const TrainingConfig& config = input.config;
  BertClassifierShape shape{
      .model = input.model,
      .head_sizes = {config.head_sizes, config.head_sizes + config.head_layers},
      .head_dropout = 0.0,
      .num_labels = input.workload.num_labels,
      .multi_label = input.workload.multi_label};
  if (config.dropout.has_value()) {
    shape.model.hidden_dropout = *config.dropout;
    shape.model.attention_dropout = *config.dropout;
  }
  shape.head_dropout = config.head_dropout.value_or(shape.model.hidden_dropout);
  return shape;
}

absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan,
                                            const TrialPasses& passes) {
  if (!HasTrace(input)) {
    return absl::UnimplementedError(absl::StrCat("replay: expected a bert on a cpu, got ",
                                                 input.model.family, " on ", input.device.kind));
  }
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input, plan));
  // No sum of a trace overflows below that.
  if (bound.live_peak.count >= kLargestTensorBytes) return bound;
  const KernelTraits traits = TraitsOf(input.device);
  const BertClassifierShape shape = ClassifierShapeOf(input);
  const AllocationTrace trace = TraceBertTrial(shape, DecidingPasses(passes), traits);
  const LivePeak live = FindLivePeak(trace, Bytes{traits.granularity});
  const PassShape head{
      .model = shape.model, .head_sizes = shape.head_sizes, .num_labels = shape.num_labels};
  MemoryEstimate estimate = EstimateOf(live, Bytes{HeadParameterBytes(head, traits)});
  estimate.peak_phase = trace.PhaseOf(live.event);
  return estimate;
}

absl::StatusOr<MemoryEstimate> ReplayMemory(const EstimateInput& input, const MemoryPlan& plan) {
  HPO_RETURN_IF_ERROR(CheckEstimateInput(input, plan));
  return ReplayMemory(input, plan, LargestPasses(input, plan));
}

absl::StatusOr<MemoryEstimate> EstimateWithin(const EstimateInput& input, const MemoryPlan& plan,
                                              Bytes limit) {
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(input, plan));
  const Bytes excess{limit.count / kLargestExcess + kSmallExcess.count};
  const bool decided = bound.needed_limit <= limit || bound.needed_limit - limit > excess;
  return decided || !HasTrace(input) ? bound : ReplayMemory(input, plan);
}

}  // namespace hpo
