#include "memory/offline/traces/causal_trace.h"

#include "common/models/model_modules.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/loss_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

TracedTensor LossOfAllTokens(TracedDevice& device, const TracedTensor& logits, int64_t vocabulary,
                             const ModelBatch& batch) {
  const int64_t tokens = batch.rows * batch.tokens;
  const TracedTensor as_float = ops::Cast(device, logits, kFloatBytes);
  const TracedStorage padded = ops::Plain(device, tokens + batch.rows, kIndexBytes);
  const TracedStorage labels = ops::Plain(device, tokens, kIndexBytes);
  return ops::CrossEntropy(device, as_float, tokens, vocabulary, labels);
}

// Every token is scored, and the last of a row that is no padding is taken.
TracedTensor LossOfLastTokens(TracedDevice& device, const TracedTensor& logits, int64_t num_labels,
                              const ModelBatch& batch) {
  const int64_t tokens = batch.rows * batch.tokens;
  TracedStorage differs = ops::Plain(device, tokens, kBoolBytes);
  const TracedStorage present = ops::Plain(device, tokens, kIntBytes);
  differs.Reset();
  const TracedStorage numbers = ops::Plain(device, batch.tokens, kIntBytes);
  TracedStorage numbered = ops::Plain(device, tokens, kIntBytes);
  const TracedStorage last = ops::Plain(device, batch.rows, kIndexBytes);
  numbered.Reset();
  const TracedStorage rows = ops::Plain(device, batch.rows, kIndexBytes);
  TracedTensor pooled = device.NewTensor(batch.rows * num_labels, logits.element_size);
  pooled.edge = device.RecordLike(logits, {rows, last});
  return ops::CrossEntropy(device, pooled, batch.rows, num_labels);
}

TracedLinear DecoderHead(const ModelParameters& parameters, const ModelShape& shape,
                         const TaskHead& head, const TracedParameter& table) {
  if (head.kind == TaskHead::Kind::kSequenceClassification) {
    return parameters.Linear(ModulesOf(*ModelFamilyOf(shape.family)).classifier.output);
  }
  if (!shape.tied_head) return parameters.Linear("lm_head");
  return {.weight = table, .in_features = shape.hidden_size, .out_features = shape.vocab_size};
}

}  // namespace

TracedStorage CausalMask(TracedDevice& device, const ModelBatch& batch) {
  const int64_t tokens = batch.tokens;
  const TracedStorage present = ops::Plain(device, batch.rows * tokens, kBoolBytes);
  const TracedStorage row_ids = ops::Plain(device, batch.rows, kIndexBytes);
  const TracedStorage head_ids = ops::Plain(device, 1, kIndexBytes);
  const TracedStorage query_ids = ops::Range(device, tokens);
  const TracedStorage key_ids = ops::Range(device, tokens);
  TracedStorage all = ops::Plain(device, 1, kBoolBytes);
  TracedStorage compared = ops::Plain(device, tokens * tokens, kBoolBytes);
  const TracedStorage causal = ops::Plain(device, tokens * tokens, kBoolBytes);
  compared.Reset();
  all.Reset();
  const TracedStorage of_keys = ops::Plain(device, batch.rows * tokens, kBoolBytes);
  return ops::Plain(device, batch.rows * tokens * tokens, kBoolBytes);
}

CausalTrace::CausalTrace(TracedDevice& device, const TracedModel& model, const char* embeddings)
    : device_(device),
      model_(model),
      shape_(model_.shape),
      parameters_(device, model_.tensors, model_.adapters),
      table_(parameters_.At(embeddings)),
      head_(DecoderHead(parameters_, shape_, model_.head, table_)) {}

TracedTensor CausalTrace::Loss(const ModelBatch& batch, const TracedStorage& ids) {
  batch_ = batch;
  const TracedTensor hidden = Decode(ids);  // held to the end
  const TracedTensor logits = ops::Linear(device_, hidden, head_);
  return model_.head.kind == TaskHead::Kind::kSequenceClassification
             ? LossOfLastTokens(device_, logits, head_.out_features, batch)
             : LossOfAllTokens(device_, logits, head_.out_features, batch);
}

}  // namespace hpo::memory
