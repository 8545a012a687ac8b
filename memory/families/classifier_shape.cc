#include "memory/families/classifier_shape.h"

#include <algorithm>

#include "common/models/model_modules.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

Bytes Rounded(int64_t bytes, const KernelTraits& traits) {
  return RoundUp(Bytes{bytes}, Bytes{traits.granularity});
}

}  // namespace

TaskHead HeadOf(TaskKind task) {
  return {.kind = task == TaskKind::kLanguageModeling ? TaskHead::Kind::kCausalLm
                                                      : TaskHead::Kind::kSequenceClassification};
}

int64_t LossRows(int64_t configured, int64_t vocab_size) {
  constexpr int64_t kLogitsAtOnce = int64_t{16} << 20;
  if (configured > 0) return configured;
  return std::max<int64_t>(1, kLogitsAtOnce / std::max<int64_t>(1, vocab_size));
}

ClassifierShape ClassifierShapeOf(const EstimateInput& input, const MemoryPlan& plan) {
  const TrainingConfig& config = input.config;
  ClassifierShape shape{.model = input.model,
                        .head_sizes = config.HeadSizes(),
                        .head_dropout = 0.0,
                        .num_labels = input.NumOutputs(),
                        .multi_label = input.workload.multi_label,
                        .task = input.workload.task,
                        .weighs_classes = config.weighs_classes,
                        .smooths_labels = config.smooths_labels,
                        .loss_rows = LossRows(config.loss_rows, input.model.vocab_size),
                        .optimizer = config.Optimizer(),
                        .execution = ExecutionOf(config, plan),
                        .freezing = config.freezing,
                        .lora = config.lora};
  if (config.dropout.has_value()) {
    shape.model.hidden_dropout = *config.dropout;
    shape.model.attention_dropout = *config.dropout;
  }
  shape.head_dropout = config.head_dropout.value_or(HeadDropoutOf(shape.model));
  return shape;
}

std::vector<ParameterExtent> HeadExtents(const ClassifierShape& shape) {
  std::vector<ParameterExtent> extents;
  if (shape.num_labels == 0) return extents;
  int64_t width = shape.model.hidden_size;
  const auto add_layer = [&](int64_t next) {
    extents.push_back({.rows = next, .columns = width});
    extents.push_back({.rows = next});
    width = next;
  };
  for (const int64_t size : shape.head_sizes) add_layer(size);
  add_layer(shape.num_labels);
  return extents;
}

Bytes HeadParameterBytes(const ClassifierShape& shape, const KernelTraits& traits) {
  Bytes all;
  for (const ParameterExtent& extent : HeadExtents(shape)) {
    all += Rounded(kFloatBytes * extent.rows * extent.columns, traits);
  }
  return all;
}

Bytes HeadStateBytes(const ClassifierShape& shape, const KernelTraits& traits) {
  Bytes all;
  for (const ParameterExtent& extent : HeadExtents(shape)) {
    for (const int64_t size : StateBytes(shape.optimizer, extent)) all += Rounded(size, traits);
  }
  return all;
}

}  // namespace hpo::memory
