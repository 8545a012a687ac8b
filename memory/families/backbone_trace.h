// Forward of our trainer's backbones as a StepTracer runs it: worker/trainer/models/backbone.h and
// its families, statement by statement. Where that code changes what it allocates,
// tests/worker/trainer/memory_trace_test.cc fails and this changes with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/models/model_spec.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/layer_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/execution.h"
#include "memory/trace/traced_device.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {

// The tensors of one batch on the device.
struct TracedBatch {
  BatchShape shape;
  TracedStorage ids;
  TracedStorage mask;
  TracedStorage types;
  TracedStorage positions;  // of packed rows, which have no mask
  TracedStorage offsets;    // of packed rows
  TracedStorage labels;
  TracedStorage numbers;  // of multi-query
  // Of multi-query with spans.
  TracedStorage asks_class;
  TracedStorage span_targets;
  TracedStorage span_weights;
  int64_t Tokens() const { return shape.TotalTokens(); }
  bool IsPacked() const { return !shape.packed.empty(); }
};

// LayerContext.
struct TracedContext {
  TracedStorage bias;
  TracedStorage mask;
  TracedTensor relative;
  TracedStorage falling_rows;
  TracedStorage rising_rows;
  TracedStorage cosines;
  TracedStorage sines;
};

class BackboneTrace {
 public:
  // All arguments outlive it. `parameters`: those of the model under a head, by their names.
  BackboneTrace(TracedDevice& device, const ModelShape& shape, const ModelParameters& parameters)
      : device_(device), shape_(shape), parameters_(parameters) {}
  virtual ~BackboneTrace() = default;

  void SetExecution(const Execution& execution) { execution_ = execution; }

  // The last hidden state.
  TracedTensor Forward(const TracedBatch& batch, bool training);

  // Where a layer begins: so many events and nodes of the tape come before it.
  struct LayerMark {
    size_t event = 0;
    int32_t node = 0;
  };
  // Of the last Forward: every layer's, and one where they end.
  const std::vector<LayerMark>& marks() const { return marks_; }

 protected:
  TracedDevice& device() const { return device_; }
  const ModelShape& shape() const { return shape_; }
  const ModelParameters& parameters() const { return parameters_; }
  // Of the pass that runs.
  const BatchShape& batch() const { return batch_; }
  bool training() const { return training_; }

  // Operations on the device, of the pass that runs.
  TracedTensor Linear(const TracedTensor& input, const TracedLinear& layer,
                      bool rows_are_flattened = true) const {
    return ops::Linear(device_, input, layer, rows_are_flattened);
  }
  TracedTensor Add(const TracedTensor& a, const TracedTensor& b) const {
    return ops::Add(device_, a, b);
  }
  TracedTensor LayerNorm(const TracedTensor& input, const TracedNorm& norm) const {
    return ops::LayerNorm(device_, input, norm);
  }
  TracedTensor RmsNorm(const TracedTensor& input, const TracedNorm& norm) const {
    return ops::RmsNorm(device_, input, norm);
  }
  TracedTensor Activate(const TracedTensor& input, Activation activation) const {
    return ops::Activate(device_, input, activation);
  }
  TracedTensor Dropout(const TracedTensor& input, double probability) const {
    return ops::Dropout(device_, input, training_ ? probability : 0.0);
  }
  AttentionShape Attention() const;
  // Rows of a table, in float32 whatever the table is.
  TracedTensor Lookup(const TracedStorage& indices, int64_t num_indices,
                      const TracedParameter& table, int64_t width) const {
    return ops::Cast(device_, ops::Embedding(device_, indices, num_indices, table, width),
                     /*element_size=*/4);
  }

 private:
  virtual TracedContext ContextOf(const TracedBatch& batch) = 0;
  virtual TracedTensor Embed(const TracedBatch& batch) = 0;
  virtual TracedTensor RunLayer(int64_t layer, const TracedTensor& hidden,
                                const TracedContext& context) = 0;
  virtual TracedTensor Finish(const TracedTensor& hidden) { return hidden; }
  // Whether one of the layers `first` to `first + count` has parameters that are trained.
  bool Trains(int64_t first, int64_t count) const;
  TracedTensor RunLayers(int64_t first, int64_t count, TracedTensor hidden,
                         const TracedContext& context);

  TracedDevice& device_;
  const ModelShape& shape_;
  const ModelParameters& parameters_;
  BatchShape batch_;
  bool training_ = true;
  Execution execution_;
  std::vector<LayerMark> marks_;
};

// The post-norm layers of BERT and its descendants (worker/trainer/models/encoder_layer.h).
class EncoderTraceBase : public BackboneTrace {
 public:
  EncoderTraceBase(TracedDevice& device, const ModelShape& shape,
                   const ModelParameters& parameters);

 protected:
  const EncoderLayerParameters& layer(int64_t index) const {
    return layers_[static_cast<size_t>(index)];
  }
  // AttentionBias.
  TracedStorage PaddingBias(const TracedBatch& batch) const;
  virtual TracedTensor SelfAttention(int64_t layer, const TracedTensor& hidden,
                                     const TracedContext& context);
  TracedTensor RunLayer(int64_t layer, const TracedTensor& hidden,
                        const TracedContext& context) override;

 private:
  TracedTensor Close(const TracedLinear& dense, const TracedNorm& norm, double dropout,
                     const TracedTensor& input, const TracedTensor& residual) const;

  std::vector<EncoderLayerParameters> layers_;
  Activation activation_;
  double dense_dropout_;
};

// What a backbone keeps on the device besides its parameters, made after these.
void KeepConstants(TracedDevice& device, const ModelShape& shape);

// `shape` is one that TrainerSupports and CheckShape takes.
std::unique_ptr<BackboneTrace> MakeBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                 const ModelParameters& parameters);

}  // namespace hpo::memory
