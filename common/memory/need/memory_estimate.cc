#include "common/memory/need/memory_estimate.h"

#include <algorithm>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/memory/allocator/allocation_timeline.h"
#include "common/memory/families/bert_timeline.h"
#include "common/memory/families/classifier_shape.h"
#include "common/memory/need/layered_peak.h"
#include "common/memory/need/memory_replay.h"
#include "common/memory/trace/trial_passes.h"
#include "common/models/model_modules.h"
#include "common/models/model_parameters.h"
#include "common/models/query_answers.h"

namespace hpo {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;
constexpr int64_t kMostLayers = 4096;

// Labels, the step count, norms of the clipping, scalars: what no formula counts.
constexpr int64_t kSmallTensors = 64 << 10;
// A card's take 512 bytes each: of the clipping one for each parameter.
constexpr int64_t kSmallCudaTensor = 512;
constexpr int64_t kParametersPerLayer = 16;
constexpr int64_t kOtherParameters = 32;

// What CUDA's caching allocator holds, and needs at least, on top of live bytes: the largest
// ratios, in percent, among 35 configurations replayed through a model of it
// (bench/memory_published; medians 1.20 and 1.05), with a constant, as segments come in pieces of
// 20 MiB. Of 6,000 random ones of our trainer 17 need more, up to 1.21 of it.
constexpr int64_t kReservedOverLive = 138;
constexpr int64_t kNeededOverLive = 134;
// Of tensors, and of the need by these ratios.
constexpr int64_t kLeastPercent = 80;
constexpr int64_t kMostPercent = 150;
constexpr Bytes kSegmentsBegun = MiB(64);

struct NamedSize {
  const char* name;
  int64_t value;
  int64_t least;
  int64_t most;
};

absl::Status CheckSizes(std::initializer_list<NamedSize> sizes) {
  for (const NamedSize& size : sizes) {
    if (size.value >= size.least && size.value <= size.most) continue;
    return absl::InvalidArgumentError(absl::StrCat(size.name, ": expected ", size.least, " to ",
                                                   size.most, ", got ", size.value));
  }
  return absl::OkStatus();
}

PassShape ShapeOf(const EstimateInput& input, const BatchShape& batch) {
  const TrainingConfig& config = input.config;
  PassShape shape{.model = input.model,
                  .head_sizes = config.HeadSizes(),
                  .num_labels = input.NumOutputs(),
                  .rows = batch.rows,
                  .tokens = batch.tokens};
  if (config.dropout.has_value()) {
    shape.model.hidden_dropout = *config.dropout;
    shape.model.attention_dropout = *config.dropout;
  }
  return shape;
}

// Of all parts of an effective batch. From the second on, each meets the gradients (`encoder`
// bytes) of those before it.
AllocationTimeline::Level TrainingPeak(const EstimateInput& input, const KernelTraits& traits,
                                       std::span<const BatchShape> parts, int64_t encoder) {
  AllocationTimeline::Level peak =
      TrainingPass(ShapeOf(input, parts.front()), traits, /*gradients_exist=*/false).peak();
  for (const BatchShape& part : parts.subspan(1)) {
    AllocationTimeline::Level later =
        TrainingPass(ShapeOf(input, part), traits, /*gradients_exist=*/true).peak();
    later.gradients += encoder;
    if (later.Total() > peak.Total()) peak = later;
  }
  return peak;
}

Bytes Percent(Bytes size, int64_t percent) {
  return size + Bytes{size.count / 100 * (percent - 100)};
}

// What the optimizer keeps for everything but the head's end, which `head` bytes are for.
// `weights`: of everything but that end.
absl::StatusOr<Bytes> OptimizerShare(const EstimateInput& input, const PassShape& shape,
                                     const KernelTraits& traits, Bytes weights, Bytes head) {
  const OptimizerSpec optimizer = input.config.Optimizer();
  if (optimizer.kind == OptimizerKind::kAdamW) return 2 * weights;
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> tensors,
                       ParameterTensors(input.model, HeadOf(input.workload.task)));
  const std::string end =
      absl::StrCat(ModulesOf(*ModelFamilyOf(input.model.family)).classifier.output, ".");
  std::vector<ParameterExtent> extents = HeadExtents(shape);
  if (input.workload.task == TaskKind::kMultiQuerySpans) {
    extents.insert(extents.end(), {{kSpanEnds, input.model.hidden_size}, {kSpanEnds, 1}});
  }
  for (const ParameterTensor& tensor : tensors) {
    if (!absl::StartsWith(tensor.name, end)) extents.push_back({tensor.rows, tensor.columns});
  }
  Bytes all;
  for (const int64_t bytes : OptimizerBytes(optimizer, extents)) {
    all += RoundUp(Bytes{bytes}, Bytes{traits.granularity});
  }
  return all - head;
}

int64_t SmallTensors(const EstimateInput& input) {
  if (input.device.kind == "cpu") return kSmallTensors;
  const int64_t parameters = kParametersPerLayer * input.model.num_layers + kOtherParameters;
  return kSmallTensors + kSmallCudaTensor * parameters;
}

// The higher of the two, and its phase.
AllocationTimeline::Level Higher(const AllocationTimeline::Level& training,
                                 const AllocationTimeline::Level& evaluation,
                                 MemoryEstimate& estimate) {
  const bool trains = training.Total() >= evaluation.Total();
  estimate.peak_phase = trains ? "training" : "evaluation";
  return trains ? training : evaluation;
}

// The optimizer's states, and the sum of all classes.
absl::Status AddOptimizer(const EstimateInput& input, const PassShape& shape,
                          const KernelTraits& traits, MemoryEstimate& estimate) {
  const Bytes head_states{HeadStateBytes(input.config.Optimizer(), shape, traits)};
  HPO_ASSIGN_OR_RETURN(estimate.optimizer,
                       OptimizerShare(input, shape, traits, estimate.weights, head_states));
  estimate.head += head_states;
  estimate.live_peak = estimate.weights + estimate.optimizer + estimate.gradients +
                       estimate.activations + estimate.head;
  return absl::OkStatus();
}

absl::StatusOr<MemoryEstimate> ClosedForm(const EstimateInput& input, const TrialPasses& passes,
                                          const KernelTraits& traits) {
  const MeasuredSteps& largest = passes.stretches.front();
  const PassShape validation = ShapeOf(input, largest.evaluation.front());
  const int64_t encoder = EncoderParameterBytes(input.model, traits);
  const int64_t head = HeadParameterBytes(validation, traits);
  MemoryEstimate estimate;
  const AllocationTimeline::Level peak =
      Higher(TrainingPeak(input, traits, largest.steps.front(), encoder),
             EvaluationPass(validation, traits).peak(), estimate);
  estimate.weights = Bytes{encoder};
  estimate.gradients = Bytes{peak.gradients};
  estimate.activations = Bytes{peak.other + SmallTensors(input)};
  estimate.head = 2 * Bytes{head};
  HPO_RETURN_IF_ERROR(AddOptimizer(input, validation, traits, estimate));
  return estimate;
}

// Whether bert_timeline.h has the family, and the task, and the batches, which it takes padded.
// A card's kernels take scratch that no formula of ours follows.
bool HasClosedForm(const EstimateInput& input) {
  if (input.device.kind != "cpu" && TrainerSupports(input.model)) return false;
  const TaskKind task = input.workload.task;
  if (task == TaskKind::kLanguageModeling || task == TaskKind::kMultiQuerySpans) return false;
  if (input.config.unpadded) return false;
  const std::optional<ModelFamily> family = ModelFamilyOf(input.model.family);
  return !family.has_value() || !(IsDecoder(*family) || *family == ModelFamily::kDeberta);
}

// The input is one that can be traced.
absl::StatusOr<MemoryEstimate> FromLayers(const EstimateInput& input, const TrialPasses& passes,
                                          const KernelTraits& traits) {
  const ClassifierShape shape = ClassifierShapeOf(input, MemoryPlan{});
  const LayeredPeak layered = FindLayeredPeak(shape, passes, traits);
  const PassShape pass{
      .model = shape.model, .head_sizes = shape.head_sizes, .num_labels = shape.num_labels};
  const Bytes head{HeadParameterBytes(pass, traits)};
  MemoryEstimate estimate;
  const AllocationTimeline::Level peak = Higher(layered.training, layered.evaluation, estimate);
  const Bytes head_gradients = std::min(head, Bytes{peak.gradients});
  estimate.weights = Bytes{layered.parameters} - head;
  estimate.gradients = Bytes{peak.gradients} - head_gradients;
  estimate.activations = Bytes{peak.other + SmallTensors(input)};
  estimate.head = head + head_gradients;
  HPO_RETURN_IF_ERROR(AddOptimizer(input, pass, traits, estimate));
  return estimate;
}

// The caching allocator's share, the workspaces and the base.
void AddDevice(const DeviceProfile& device, MemoryEstimate& estimate) {
  if (device.kind == "cpu") {
    estimate.SetPeaksToLive();
    return;
  }
  estimate.workspaces = device.workspace;
  estimate.base = device.base;
  const Bytes around = device.workspace + kSegmentsBegun;
  estimate.reserved_peak = Percent(estimate.live_peak, kReservedOverLive) + around;
  estimate.expected_live_peak = estimate.live_peak;
  estimate.expected_reserved_peak = estimate.reserved_peak;
  estimate.needed_limit = Percent(estimate.live_peak, kNeededOverLive) + around + device.base;
}

}  // namespace

absl::Status CheckEstimateInput(const EstimateInput& input, const MemoryPlan& plan) {
  const ModelShape& model = input.model;
  const TrainingConfig& config = input.config;
  HPO_RETURN_IF_ERROR(CheckSizes({
      {"vocab_size", model.vocab_size, 1, kLargestSize},
      {"hidden_size", model.hidden_size, 1, kLargestSize},
      {"num_hidden_layers", model.num_layers, 1, kMostLayers},
      {"num_attention_heads", model.num_heads, 1, model.hidden_size},
      {"intermediate_size", model.intermediate_size, 1, kLargestSize},
      {"max_position_embeddings", model.max_positions, 1, kLargestSize},
      {"type_vocab_size", model.type_vocab_size, 0, kLargestSize},
      {"train.batch_size", config.batch_size, 1, kLargestSize},
      {"train.grad_accum", config.grad_accum, 1, kLargestSize},
      {"tok.max_length", config.max_length, 1, kLargestSize},
      {"train.eval_batch_multiplier", config.eval_batch_multiplier, 1, kLargestSize},
      {"head.layers", config.head_layers, 0, 3},
      {"labels", input.workload.num_labels,
       input.workload.task == TaskKind::kLanguageModeling ? 0 : 1, kLargestSize},
      {"plan.effective_batch", plan.effective_batch, 1, kLargestSize * kLargestSize},
      {"plan.micro_batch", plan.micro_batch, 1, kLargestSize},
  }));
  const std::optional<ModelFamily> family = ModelFamilyOf(model.family);
  if (input.workload.task == TaskKind::kLanguageModeling &&
      !(family.has_value() && IsDecoder(*family))) {
    return absl::InvalidArgumentError(
        absl::StrCat("model_type: expected gpt2, llama or qwen2 for language modelling, got '",
                     model.family, "'"));
  }
  for (int64_t layer = 0; layer < config.head_layers; ++layer) {
    HPO_RETURN_IF_ERROR(CheckSizes({{"head.size", config.head_sizes[layer], 1, kLargestSize}}));
  }
  HPO_RETURN_IF_ERROR(CheckUnpadded(config, model, input.workload.task));
  return CheckTrainedParts(config, model);
}

KernelTraits TraitsOf(const DeviceProfile& device) {
  if (device.kind != "cpu") {
    KernelTraits traits = KernelTraits::Cuda();
    const int64_t of_a_thread = device.workspace.count / kThreadsThatMultiply;
    traits.bias_workspace = std::min(kBiasWorkspace, of_a_thread);
    traits.gemm_workspace = of_a_thread - traits.bias_workspace;
    // Text of an older worker names one kernel alone, or none.
    traits.attention = ParseAttentionKernels(device.attention)
                           .value_or(AttentionKernels::OfCapability(device.capability));
    traits.capability = CapabilityNumber(device.capability);
    if (device.multiprocessors > 0 && device.threads_per_multiprocessor > 0) {
      traits.multiprocessors = device.multiprocessors;
      traits.threads_per_multiprocessor = device.threads_per_multiprocessor;
    }
    return traits;
  }
  KernelTraits traits = KernelTraits::Cpu();
  if (device.threads > 0) traits.threads_with_buffers = device.threads;
  return traits;
}

NeedRange NeedRangeOf(const MemoryEstimate& formula) {
  const Bytes need = formula.needed_limit - formula.base;
  return {.least = Percent(formula.live_peak, kLeastPercent) + formula.base,
          .most = Percent(need, kMostPercent) + formula.base};
}

absl::StatusOr<MemoryEstimate> EstimateMemory(const EstimateInput& input, const MemoryPlan& plan) {
  HPO_RETURN_IF_ERROR(CheckEstimateInput(input, plan));
  const KernelTraits traits = TraitsOf(input.device);
  const TrialPasses passes = LargestPasses(input, plan);
  HPO_ASSIGN_OR_RETURN(MemoryEstimate estimate, ClosedForm(input, passes, traits));
  const bool is_plain = ExecutionOf(input.config, plan) == Execution{} &&
                        !input.config.freezing.Any() && !input.config.lora.has_value();
  if (!is_plain && CanBeTraced(input, estimate.live_peak)) {
    estimate = TraceTensors(input, plan, passes);
  } else if (!HasClosedForm(input) && estimate.live_peak.count < kLargestTensorBytes) {
    HPO_RETURN_IF_ERROR(CheckShape(input.model, ShapeKeys{}));
    HPO_ASSIGN_OR_RETURN(estimate, FromLayers(input, passes, traits));
  }
  AddDevice(input.device, estimate);
  return estimate;
}

}  // namespace hpo
