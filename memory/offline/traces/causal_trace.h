// What the decoders' traces share: the mask that hides later tokens, and the head with its loss.
// Source: masking_utils.py, loss/loss_utils.py and GenericForSequenceClassification in
// modeling_layers.py of transformers 5.23.
#pragma once

#include "memory/offline/traces/model_trace.h"
#include "memory/offline/traces/traced_model.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// [rows, 1, tokens, tokens], one byte each: true where a token may look.
TracedStorage CausalMask(TracedDevice& device, const ModelBatch& batch);

// A decoder under its head: a language model's, which is the word embeddings' table where it is
// tied, or a classifier's.
class CausalTrace : public ModelTrace {
 public:
  // `embeddings`: the name of that table.
  CausalTrace(TracedDevice& device, const TracedModel& model, const char* embeddings);

  // Over every token a label, or over the last token of each row.
  TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) final;

 protected:
  // The last layer's output, of batch_.
  virtual TracedTensor Decode(const TracedStorage& ids) = 0;

  TracedDevice& device_;
  const TracedModel model_;
  const ModelShape& shape_;
  const ModelParameters parameters_;
  const TracedParameter table_;
  ModelBatch batch_;

 private:
  const TracedLinear head_;
};

}  // namespace hpo::memory
