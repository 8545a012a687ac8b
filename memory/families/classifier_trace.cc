// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/families/classifier_trace.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/query_answers.h"
#include "common/study/unread_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

bool Decays(ParameterKind kind) {
  return kind != ParameterKind::kBias && kind != ParameterKind::kNorm;
}

// In the order in which torch lists them.
std::vector<ParameterTensor> TensorsOfBackbone(const ModelShape& shape) {
  auto tensors = ParameterTensors(shape, {.kind = TaskHead::Kind::kSequenceClassification});
  HPO_CHECK(tensors.ok());
  const std::string prefix = absl::StrCat(ModulesOf(*ModelFamilyOf(shape.family)).prefix, ".");
  std::erase_if(*tensors, [&prefix](const ParameterTensor& tensor) {
    return !absl::StartsWith(tensor.name, prefix);
  });
  return *std::move(tensors);
}

// In the order in which our trainer makes them: DeBERTa's own projections of positions after the
// rest of their layer.
std::vector<ParameterTensor> AsMade(const ModelShape& shape, std::vector<ParameterTensor> tensors) {
  if (ModelFamilyOf(shape.family) != ModelFamily::kDeberta) return tensors;
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const ParameterTensor& a, const ParameterTensor& b) {
                     return std::pair(a.layer, absl::StrContains(a.name, ".self.pos_")) <
                            std::pair(b.layer, absl::StrContains(b.name, ".self.pos_"));
                   });
  return tensors;
}

}  // namespace

TracedAdapters AdaptersOf(const ModelShape& shape, const LoraOptions& lora) {
  const auto layers = AdaptedLayers(shape, lora);
  HPO_CHECK(layers.ok());
  TracedAdapters adapters{.tensors = {}, .dropout = lora.dropout};
  for (const AdaptedLayer& layer : *layers) {
    for (const ParameterTensor& tensor : AdapterTensors(layer, lora.rank)) {
      adapters.tensors.push_back(tensor);
    }
  }
  return adapters;
}

void AddTrained(const std::vector<ParameterTensor>& tensors, const ModelParameters& parameters,
                TracedParameterGroups& groups) {
  for (const ParameterTensor& tensor : tensors) {
    const TracedParameter& parameter = parameters.At(tensor.name);
    if (!parameter.trainable) continue;
    (Decays(tensor.kind) ? groups.decaying : groups.others).push_back(parameter);
  }
}

bool IsTrained(const ParameterTensor& tensor, const ClassifierShape& shape) {
  return !shape.lora.has_value() && !IsFrozen(tensor, shape.freezing) &&
         IsRead(tensor, shape.model);
}

FrozenType BaseOf(const ClassifierShape& shape) {
  return shape.lora.has_value() ? shape.lora->base : FrozenType::kFloat32;
}

ClassifierTrace::ClassifierTrace(TracedDevice& device, const ClassifierShape& shape)
    : device_(device),
      shape_(shape),
      modules_(ModulesOf(*ModelFamilyOf(shape.model.family)).classifier) {
  std::vector<ParameterTensor> tensors = TensorsOfBackbone(shape.model);
  device.SetFloat16(shape.execution.precision == Precision::kFloat16);
  parameters_ = std::make_unique<ModelParameters>(
      device, AsMade(shape.model, tensors),
      [&shape](const ParameterTensor& tensor) { return IsTrained(tensor, shape); }, BaseOf(shape));
  KeepConstants(device, shape.model);
  const std::optional<TracedLinear> own_dense = MakeHead();
  if (shape.lora.has_value()) {
    const TracedAdapters adapters = AdaptersOf(shape.model, *shape.lora);
    parameters_->AddAdapters(device, adapters);
    tensors = adapters.tensors;
  }
  AddTrained(tensors, *parameters_, groups_);
  if (own_dense.has_value()) AddToGroups(*own_dense);
  AddToGroups(head_);
  for (const TracedLinear& layer : head_hidden_) AddToGroups(layer);
  if (span_head_.has_value()) AddToGroups(*span_head_);
  backbone_ = MakeBackboneTrace(device, shape.model, *parameters_);
  backbone_->SetExecution(shape.execution);
  if (modules_.dense != nullptr) {
    dense_ = own_dense.has_value() ? *own_dense : parameters_->Linear(modules_.dense);
  }
}

// The layer before the head's, where it is no part of the backbone, as BERT's is.
std::optional<TracedLinear> ClassifierTrace::MakeHead() {
  int64_t width = shape_.model.hidden_size;
  std::optional<TracedLinear> own_dense;
  if (modules_.dense != nullptr && !parameters_->Has(absl::StrCat(modules_.dense, ".weight"))) {
    own_dense = ops::MakeLinear(device_, width, width);
  }
  for (const int64_t size : shape_.head_sizes) {
    head_hidden_.push_back(ops::MakeLinear(device_, width, size));
    width = size;
  }
  head_ = ops::MakeLinear(device_, width, shape_.num_labels, modules_.output_bias);
  if (shape_.task == TaskKind::kMultiQuerySpans) {
    span_head_ = ops::MakeLinear(device_, shape_.model.hidden_size, kSpanEnds);
  }
  return own_dense;
}

void ClassifierTrace::AddToGroups(const TracedLinear& layer) {
  groups_.decaying.push_back(layer.weight);
  if (layer.bias.has_value()) groups_.others.push_back(*layer.bias);
}

TracedTensor ClassifierTrace::SelectToken(const TracedTensor& hidden,
                                          const TracedBatch& traced) const {
  StepTracer& tracer = device_.tracer();
  const BatchShape& batch = traced.shape;
  if (traced.IsPacked()) {
    TracedTensor firsts =
        tracer.NewTensor(batch.rows * shape_.model.hidden_size, hidden.element_size);
    firsts.edge = tracer.RecordLike(hidden, {traced.offsets});
    return firsts;
  }
  if (!modules_.last_token) return ops::Select(device_, hidden, batch.tokens);
  TracedStorage last;
  {
    const TracedStorage numbers = tracer.Allocate(kIndexBytes * batch.tokens);
    const TracedStorage of_tokens = tracer.Allocate(kIndexBytes * batch.rows * batch.tokens);
    last = tracer.Allocate(kIndexBytes * batch.rows);
  }
  const TracedStorage rows = tracer.Allocate(kIndexBytes * batch.rows);
  TracedTensor selected = tracer.NewTensor(hidden.elements / batch.tokens, hidden.element_size);
  selected.edge = tracer.RecordLike(hidden, {rows});
  return selected;
}

ClassifierTrace::Outputs ClassifierTrace::ForwardWithSpans(const TracedBatch& batch,
                                                           bool training) {
  if (shape_.execution.precision == Precision::kFloat32) return Compute(batch, training);
  device_.EnterAutocast();
  Outputs outputs = Compute(batch, training);
  device_.LeaveAutocast();
  outputs.logits = ops::Cast(device_, outputs.logits, kFloatBytes);
  if (span_head_.has_value()) outputs.spans = ops::Cast(device_, outputs.spans, kFloatBytes);
  return outputs;
}

ClassifierTrace::Outputs ClassifierTrace::Compute(const TracedBatch& batch, bool training) {
  TracedTensor hidden = backbone_->Forward(batch, training);
  TracedTensor features = SelectToken(hidden, batch);
  Outputs outputs;
  if (span_head_.has_value()) outputs.spans = ops::Linear(device_, hidden, *span_head_);
  hidden.storage.Reset();
  outputs.logits = Logits(std::move(features), training);
  return outputs;
}

TracedTensor ClassifierTrace::Logits(TracedTensor features, bool training) {
  if (modules_.dense != nullptr) {
    if (modules_.dropout_before_dense && training) {
      features = ops::Dropout(device_, features, shape_.head_dropout);
    }
    features =
        ops::Activate(device_, ops::Linear(device_, features, dense_, /*rows_are_flattened=*/false),
                      modules_.activation);
  }
  return RunHead(features, training);
}

TracedTensor ClassifierTrace::RunHead(const TracedTensor& pooled, bool training) const {
  const double dropout = training ? shape_.head_dropout : 0.0;
  TracedTensor features = ops::Dropout(device_, pooled, dropout);
  for (const TracedLinear& layer : head_hidden_) {
    features = ops::Dropout(
        device_, ops::Activate(device_, ops::Linear(device_, features, layer), Activation::kGelu),
        dropout);
  }
  return ops::Linear(device_, features, head_);
}

}  // namespace hpo::memory
