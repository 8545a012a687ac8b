#include "common/memory/classifier_trace.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kFloat = 4;

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
std::vector<ParameterTensor> AsMade(std::vector<ParameterTensor> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const ParameterTensor& a, const ParameterTensor& b) {
                     return std::pair(a.layer, absl::StrContains(a.name, ".self.pos_")) <
                            std::pair(b.layer, absl::StrContains(b.name, ".self.pos_"));
                   });
  return tensors;
}

}  // namespace

ClassifierTrace::ClassifierTrace(TraceOps& ops, const ClassifierShape& shape)
    : ops_(ops), shape_(shape), modules_(ModulesOf(*ModelFamilyOf(shape.model.family)).classifier) {
  const std::vector<ParameterTensor> tensors = TensorsOfBackbone(shape.model);
  parameters_ = std::make_unique<ModelParameters>(ops, AsMade(tensors));
  for (const ParameterTensor& tensor : tensors) {
    auto& group = Decays(tensor.kind) ? groups_.decaying : groups_.others;
    group.push_back(parameters_->At(tensor.name));
  }
  backbone_ = MakeBackboneTrace(ops, shape.model, *parameters_);
  backbone_->SetExecution(shape.execution);
  int64_t width = shape.model.hidden_size;
  if (modules_.dense != nullptr) MakeDense(width);
  for (const int64_t size : shape.head_sizes) {
    head_hidden_.push_back(ops.MakeLinear(width, size));
    width = size;
  }
  head_ = ops.MakeLinear(width, shape.num_labels, modules_.output_bias);
  AddToGroups(head_);
  for (const TracedLinear& layer : head_hidden_) AddToGroups(layer);
}

// BERT's is a part of the backbone.
void ClassifierTrace::MakeDense(int64_t width) {
  if (parameters_->Has(absl::StrCat(modules_.dense, ".weight"))) {
    dense_ = parameters_->Linear(modules_.dense);
  } else {
    dense_ = ops_.MakeLinear(width, width);
    AddToGroups(dense_);
  }
}

void ClassifierTrace::AddToGroups(const TracedLinear& layer) {
  groups_.decaying.push_back(layer.weight);
  if (layer.bias.has_value()) groups_.others.push_back(*layer.bias);
}

TracedTensor ClassifierTrace::SelectToken(const TracedTensor& hidden,
                                          const BatchShape& batch) const {
  if (!modules_.last_token) return ops_.Select(hidden, batch.tokens);
  StepTracer& tracer = ops_.tracer();
  TracedStorage last;
  {
    const TracedStorage numbers = tracer.Allocate(kIndex * batch.tokens);
    const TracedStorage of_tokens = tracer.Allocate(kIndex * batch.rows * batch.tokens);
    last = tracer.Allocate(kIndex * batch.rows);
  }
  const TracedStorage rows = tracer.Allocate(kIndex * batch.rows);
  TracedTensor selected = tracer.NewTensor(hidden.elements / batch.tokens);
  selected.edge = tracer.RecordLike(hidden, {rows});
  return selected;
}

TracedTensor ClassifierTrace::Forward(const TracedBatch& batch, bool training) {
  if (shape_.execution.precision == Precision::kFloat32) return Logits(batch, training);
  ops_.EnterAutocast(/*caches_weights=*/false);
  const TracedTensor logits = Logits(batch, training);
  ops_.LeaveAutocast();
  return ops_.Cast(logits, kFloat);
}

TracedTensor ClassifierTrace::Logits(const TracedBatch& batch, bool training) {
  TracedTensor features = SelectToken(backbone_->Forward(batch, training), batch.shape);
  if (modules_.dense != nullptr) {
    if (modules_.dropout_before_dense && training) {
      features = ops_.Dropout(features, shape_.head_dropout);
    }
    features = ops_.Activate(ops_.Linear(features, dense_), modules_.activation);
  }
  return RunHead(features, training);
}

TracedTensor ClassifierTrace::RunHead(const TracedTensor& pooled, bool training) const {
  const double dropout = training ? shape_.head_dropout : 0.0;
  TracedTensor features = ops_.Dropout(pooled, dropout);
  for (const TracedLinear& layer : head_hidden_) {
    features =
        ops_.Dropout(ops_.Activate(ops_.Linear(features, layer), Activation::kGelu), dropout);
  }
  return ops_.Linear(features, head_);
}

}  // namespace hpo
