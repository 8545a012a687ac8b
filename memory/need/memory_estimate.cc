#include "memory/need/memory_estimate.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/model_modules.h"
#include "common/models/model_parameters.h"
#include "common/models/query_answers.h"
#include "common/study/trial.h"
#include "memory/allocator/allocation_timeline.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/layered_peak.h"
#include "memory/need/memory_replay.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;
// What is sure to be below can be added up; what may be above is said to be as much.
constexpr Bytes kMostTraced = GiB(int64_t{1} << 30);

// Labels, the step count, norms of the clipping, scalars: what no trace of the passes counts.
constexpr int64_t kSmallTensors = 64 << 10;
// A card's take 512 bytes each: of the clipping one for each parameter.
constexpr int64_t kSmallCudaTensor = 512;
constexpr int64_t kParametersPerLayer = 16;
constexpr int64_t kOtherParameters = 32;

// What CUDA's caching allocator holds, and needs at least, on top of live bytes: the largest
// ratios, in percent, among 35 configurations of other programs replayed through a model of it
// (medians 1.20 and 1.05), with a constant, as segments come in pieces of 20 MiB. Of 6,000 random
// ones of our trainer 17 need more, up to 1.21 of it.
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

// More than the sum of all tensors of a trial, in a number that does not overflow: every layer is
// as wide as the widest, every row as long as the model's positions.
double BoundBySizes(const EstimateInput& input, const TrialPasses& passes) {
  const ModelShape& model = input.model;
  int64_t widest = std::max({model.hidden_size, model.intermediate_size, model.EmbeddingSize(),
                             model.num_heads * model.HeadSize(), input.NumOutputs()});
  for (const int64_t size : input.config.HeadSizes()) widest = std::max(widest, size);
  const MeasuredSteps& largest = passes.stretches.front();
  double tokens = 0.0;
  for (const auto& batches : {largest.steps.front(), largest.evaluation}) {
    for (const BatchShape& batch : batches) {
      tokens =
          std::max(tokens, static_cast<double>(batch.rows) * static_cast<double>(batch.tokens));
    }
  }
  const auto width = static_cast<double>(widest);
  const auto layers = static_cast<double>(model.num_layers + 4);  // embeddings and head too
  const auto positions = static_cast<double>(model.max_positions + model.relative.span);
  const auto tables = 2.0 * positions + static_cast<double>(model.vocab_size + model.pad_token_id +
                                                            model.type_vocab_size);
  const double parameters = tables * width + 32.0 * layers * width * width;
  const double scores = static_cast<double>(model.num_heads) * 16.0 * positions;
  return 32.0 * parameters + 8.0 * tokens * (layers * (64.0 * width + scores) + 8.0 * tables);
}

Bytes Percent(Bytes size, int64_t percent) {
  return size + Bytes{size.count / 100 * (percent - 100)};
}

// What the optimizer keeps for everything but the head's end, which `head` bytes are for.
// `weights`: of everything but that end.
absl::StatusOr<Bytes> OptimizerShare(const ClassifierShape& shape, const KernelTraits& traits,
                                     Bytes weights, Bytes head) {
  if (shape.optimizer.kind == OptimizerKind::kAdamW) return 2 * weights;
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> tensors,
                       ParameterTensors(shape.model, HeadOf(shape.task)));
  const std::string end =
      absl::StrCat(ModulesOf(*ModelFamilyOf(shape.model.family)).classifier.output, ".");
  std::vector<ParameterExtent> extents = HeadExtents(shape);
  if (shape.task == TaskKind::kMultiQuerySpans) {
    extents.insert(extents.end(), {{kSpanEnds, shape.model.hidden_size}, {kSpanEnds, 1}});
  }
  for (const ParameterTensor& tensor : tensors) {
    if (!absl::StartsWith(tensor.name, end)) extents.push_back({tensor.rows, tensor.columns});
  }
  Bytes all;
  for (const int64_t bytes : OptimizerBytes(shape.optimizer, extents)) {
    all += RoundUp(Bytes{bytes}, Bytes{traits.granularity});
  }
  return all - head;
}

int64_t SmallTensors(const EstimateInput& input) {
  if (input.device.kind == "cpu") return kSmallTensors;
  const int64_t parameters = kParametersPerLayer * input.model.num_layers + kOtherParameters;
  return kSmallTensors + kSmallCudaTensor * parameters;
}

absl::StatusOr<MemoryEstimate> FromLayers(const EstimateInput& input, const TrialPasses& passes,
                                          const KernelTraits& traits) {
  const ClassifierShape shape = ClassifierShapeOf(input, MemoryPlan{});
  const LayeredPeak layered = FindLayeredPeak(shape, passes, traits);
  const bool trains = layered.training.Total() >= layered.evaluation.Total();
  const AllocationTimeline::Level& peak = trains ? layered.training : layered.evaluation;
  const Bytes head = HeadParameterBytes(shape, traits);
  const Bytes head_gradients = std::min(head, Bytes{peak.gradients});
  const Bytes head_states = HeadStateBytes(shape, traits);
  MemoryEstimate estimate;
  estimate.weights = Bytes{layered.parameters} - head;
  estimate.gradients = Bytes{peak.gradients} - head_gradients;
  HPO_ASSIGN_OR_RETURN(estimate.optimizer,
                       OptimizerShare(shape, traits, estimate.weights, head_states));
  estimate.activations = Bytes{peak.other + SmallTensors(input)};
  estimate.head = head + head_gradients + head_states;
  estimate.live_peak = estimate.weights + estimate.optimizer + estimate.gradients +
                       estimate.activations + estimate.head;
  estimate.peak_phase = trains ? "training" : "evaluation";
  return estimate;
}

// Of a plan that is valid. One that takes its layers as they are goes by three of them.
absl::StatusOr<MemoryEstimate> Tensors(const EstimateInput& input, const MemoryPlan& plan,
                                       const KernelTraits& traits) {
  const TrialPasses passes = LargestPasses(input, plan);
  if (BoundBySizes(input, passes) >= static_cast<double>(kMostTraced.count)) {
    return MemoryEstimate{
        .activations = kMostTraced, .live_peak = kMostTraced, .peak_phase = "training"};
  }
  const bool is_plain = ExecutionOf(input.config, plan) == Execution{} &&
                        !input.config.freezing.Any() && !input.config.lora.has_value();
  if (!is_plain) return TraceTensors(input, plan, passes);
  return FromLayers(input, passes, traits);
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
  HPO_RETURN_IF_ERROR(CheckTrainable(model));
  HPO_RETURN_IF_ERROR(CheckShape(model, ShapeKeys{}));
  HPO_RETURN_IF_ERROR(CheckSizes({
      {kBatchSizeParameter, config.batch_size, 1, kLargestSize},
      {kGradAccumParameter, config.grad_accum, 1, kLargestSize},
      {kMaxLengthParameter, config.max_length, 1, kLargestSize},
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
    // A device that lists no attention kernels is taken to have those of its compute capability.
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
  HPO_ASSIGN_OR_RETURN(MemoryEstimate estimate, Tensors(input, plan, TraitsOf(input.device)));
  AddDevice(input.device, estimate);
  return estimate;
}

}  // namespace hpo::memory
