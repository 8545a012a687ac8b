#include "common/memory/memory_estimate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/memory/allocation_timeline.h"
#include "common/memory/bert_timeline.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 31;
constexpr int64_t kMostLayers = 4096;
constexpr int64_t kMostRows = int64_t{1} << 60;

// Labels, the step count, norms of the clipping, scalars: what no formula counts.
constexpr int64_t kSmallTensors = 64 << 10;

// What CUDA's caching allocator holds, and needs at least, on top of live bytes: the largest ratios
// among 35 configurations replayed through a model of it (shared/research/memory.md 1.4; medians
// 1.20 and 1.05). In percent.
constexpr int64_t kReservedOverLive = 138;
constexpr int64_t kNeededOverLive = 134;

// AdamW keeps two moments of each parameter.
constexpr int64_t kMomentsPerParameter = 2;

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

absl::Status Validate(const EstimateInput& input, const MemoryPlan& plan) {
  const ModelShape& model = input.model;
  const TrainingConfig& config = input.config;
  HPO_RETURN_IF_ERROR(CheckSizes({
      {"vocab_size", model.vocab_size, 1, kLargestSize},
      {"hidden_size", model.hidden_size, 1, kLargestSize},
      {"num_hidden_layers", model.num_layers, 1, kMostLayers},
      {"num_attention_heads", model.num_heads, 1, model.hidden_size},
      {"intermediate_size", model.intermediate_size, 1, kLargestSize},
      {"max_position_embeddings", model.max_positions, 1, kLargestSize},
      {"type_vocab_size", model.type_vocab_size, 1, kLargestSize},
      {"train.batch_size", config.batch_size, 1, kLargestSize},
      {"train.grad_accum", config.grad_accum, 1, kLargestSize},
      {"tok.max_length", config.max_length, 1, kLargestSize},
      {"train.eval_batch_multiplier", config.eval_batch_multiplier, 1, kLargestSize},
      {"head.layers", config.head_layers, 0, 3},
      {"labels", input.workload.num_labels, 1, kLargestSize},
      {"plan.effective_batch", plan.effective_batch, 1, kLargestSize * kLargestSize},
      {"plan.micro_batch", plan.micro_batch, 1, kLargestSize},
  }));
  for (int64_t layer = 0; layer < config.head_layers; ++layer) {
    HPO_RETURN_IF_ERROR(CheckSizes({{"head.size", config.head_sizes[layer], 1, kLargestSize}}));
  }
  return absl::OkStatus();
}

// At least 1; kMostRows where nothing is known.
int64_t NumRows(const LengthHistogram& lengths) {
  if (lengths.empty()) return kMostRows;
  int64_t rows = 0;
  for (const auto& [length, count] : lengths) {
    rows = std::min(kMostRows, rows + std::clamp<int64_t>(count, 0, kMostRows));
  }
  return std::max<int64_t>(rows, 1);
}

// The largest batch of `rows` rows of this data, padded as worker/text/batcher.h does.
PassShape LongestBatch(const EstimateInput& input, const LengthHistogram& lengths, int64_t rows) {
  const TrainingConfig& config = input.config;
  PassShape shape{
      .model = input.model,
      .head_sizes = {config.head_sizes, config.head_sizes + config.head_layers},
      .num_labels = input.workload.num_labels,
      .rows = std::min(rows, NumRows(lengths)),
      .tokens = std::min(LongestPadded(lengths, config.max_length), input.model.max_positions)};
  if (config.dropout.has_value()) {
    shape.model.hidden_dropout = *config.dropout;
    shape.model.attention_dropout = *config.dropout;
  }
  return shape;
}

Bytes Percent(Bytes size, int64_t percent) {
  return size + Bytes{size.count / 100 * (percent - 100)};
}

// The caching allocator's share, the workspaces and the base.
void AddDevice(const DeviceProfile& device, MemoryEstimate& estimate) {
  if (device.kind == "cpu") {
    estimate.reserved_peak = estimate.live_peak;
    estimate.needed_limit = estimate.live_peak;
    return;
  }
  estimate.workspaces = device.workspace;
  estimate.base = device.base;
  estimate.reserved_peak = Percent(estimate.live_peak, kReservedOverLive) + device.workspace;
  estimate.needed_limit =
      Percent(estimate.live_peak, kNeededOverLive) + device.workspace + device.base;
}

}  // namespace

absl::StatusOr<MemoryEstimate> EstimateMemory(const EstimateInput& input, const MemoryPlan& plan) {
  HPO_RETURN_IF_ERROR(Validate(input, plan));
  KernelTraits traits = input.device.kind == "cpu" ? KernelTraits::Cpu() : KernelTraits::Cuda();
  if (traits.threads_with_buffers > 0 && input.device.threads > 0) {
    traits.threads_with_buffers = input.device.threads;
  }
  const Workload& workload = input.workload;
  const int64_t effective_batch = std::min(plan.effective_batch, NumRows(workload.train_lengths));
  const PassShape train =
      LongestBatch(input, workload.train_lengths, std::min(plan.micro_batch, effective_batch));
  const PassShape validation =
      LongestBatch(input, workload.validation_lengths,
                   TensorBytes({plan.micro_batch, input.config.eval_batch_multiplier}));

  const int64_t encoder = EncoderParameterBytes(input.model, traits);
  const int64_t head = HeadParameterBytes(train, traits);
  // From the second part on, every part meets the gradients of those before it.
  const bool several_parts = effective_batch > train.rows;
  AllocationTimeline::Level peak = TrainingPass(train, traits, several_parts).peak();
  if (several_parts) peak.gradients += encoder;
  const AllocationTimeline::Level evaluation = EvaluationPass(validation, traits).peak();

  MemoryEstimate estimate;
  estimate.peak_phase = "training";
  if (evaluation.Total() > peak.Total()) {
    peak = evaluation;
    estimate.peak_phase = "evaluation";
  }
  estimate.weights = Bytes{encoder};
  estimate.optimizer = kMomentsPerParameter * Bytes{encoder};
  estimate.gradients = Bytes{peak.gradients};
  estimate.activations = Bytes{peak.other + kSmallTensors};
  estimate.head = (2 + kMomentsPerParameter) * Bytes{head};
  estimate.live_peak = estimate.weights + estimate.optimizer + estimate.gradients +
                       estimate.activations + estimate.head;
  AddDevice(input.device, estimate);
  return estimate;
}

}  // namespace hpo
