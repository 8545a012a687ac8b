// Our trainer's text classifiers as a StepTracer runs them:
// worker/trainer/models/text_classifier.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/models/model_modules.h"
#include "memory/families/backbone_trace.h"
#include "memory/families/classifier_shape.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// As AdamW groups them, each in the order in which torch lists parameters: a module's own before
// its children's. Weights decay; biases and parameters of norms do not.
struct TracedParameterGroups {
  std::vector<TracedParameter> decaying;
  std::vector<TracedParameter> others;
};

// Whether the model itself is trained in `tensor`, one of the backbone's.
bool IsTrained(const ParameterTensor& tensor, const ClassifierShape& shape);
// How the backbone is stored; other types than kFloat32 are those of frozen ones.
FrozenType BaseOf(const ClassifierShape& shape);
// Our trainer's adapters; `lora` is one that AdaptedLayers takes.
TracedAdapters AdaptersOf(const ModelShape& shape, const LoraOptions& lora);
// Adds those of `tensors`, made as `parameters`, that are trained.
void AddTrained(const std::vector<ParameterTensor>& tensors, const ModelParameters& parameters,
                TracedParameterGroups& groups);

class ClassifierTrace {
 public:
  // Makes the parameters. Arguments outlive it; `shape.model` is one that TrainerSupports and
  // CheckShape takes, and CheckTrainedParts what is trained of it.
  ClassifierTrace(TracedDevice& device, const ClassifierShape& shape);

  struct Outputs {
    TracedTensor logits;
    TracedTensor spans;  // of TaskKind::kMultiQuerySpans alone
  };
  Outputs ForwardWithSpans(const TracedBatch& batch, bool training);
  // Logits.
  TracedTensor Forward(const TracedBatch& batch, bool training) {
    return ForwardWithSpans(batch, training).logits;
  }

  const TracedParameterGroups& groups() const { return groups_; }
  const BackboneTrace& backbone() const { return *backbone_; }

 private:
  Outputs Compute(const TracedBatch& batch, bool training);
  TracedTensor Logits(TracedTensor features, bool training);
  std::optional<TracedLinear> MakeHead();
  void AddToGroups(const TracedLinear& layer);
  TracedTensor SelectToken(const TracedTensor& hidden, const TracedBatch& batch) const;
  TracedTensor RunHead(const TracedTensor& features, bool training) const;

  TracedDevice& device_;
  const ClassifierShape& shape_;
  const ClassifierModules& modules_;
  TracedParameterGroups groups_;
  std::unique_ptr<ModelParameters> parameters_;
  std::unique_ptr<BackboneTrace> backbone_;
  TracedLinear dense_;
  std::vector<TracedLinear> head_hidden_;
  TracedLinear head_;
  std::optional<TracedLinear> span_head_;
};

}  // namespace hpo::memory
