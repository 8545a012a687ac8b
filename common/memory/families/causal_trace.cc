#include "common/memory/families/causal_trace.h"

#include "common/models/model_modules.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kBool = 1;
constexpr int64_t kInt = 4;
constexpr int64_t kFloat = 4;

TracedTensor LossOfAllTokens(TraceOps& ops, const TracedTensor& logits, int64_t vocabulary,
                             const ModelBatch& batch) {
  ModelOps model_ops(ops);
  const int64_t tokens = batch.rows * batch.tokens;
  const TracedTensor as_float = ops.Cast(logits, kFloat);
  const TracedStorage padded = model_ops.Plain(tokens + batch.rows, kIndex);
  const TracedStorage labels = model_ops.Plain(tokens, kIndex);
  return ops.CrossEntropy(as_float, tokens, vocabulary, labels);
}

// Every token is scored, and the last of a row that is no padding is taken.
TracedTensor LossOfLastTokens(TraceOps& ops, const TracedTensor& logits, int64_t num_labels,
                              const ModelBatch& batch) {
  ModelOps model_ops(ops);
  const int64_t tokens = batch.rows * batch.tokens;
  TracedStorage differs = model_ops.Plain(tokens, kBool);
  const TracedStorage present = model_ops.Plain(tokens, kInt);
  differs.Reset();
  const TracedStorage numbers = model_ops.Plain(batch.tokens, kInt);
  TracedStorage numbered = model_ops.Plain(tokens, kInt);
  const TracedStorage last = model_ops.Plain(batch.rows, kIndex);
  numbered.Reset();
  const TracedStorage rows = model_ops.Plain(batch.rows, kIndex);
  TracedTensor pooled = ops.tracer().NewTensor(batch.rows * num_labels, logits.element_size);
  pooled.edge = ops.tracer().RecordLike(logits, {rows, last});
  return ops.CrossEntropy(pooled, batch.rows, num_labels);
}

}  // namespace

TracedStorage CausalMask(ModelOps& ops, const ModelBatch& batch) {
  const int64_t tokens = batch.tokens;
  const TracedStorage present = ops.Plain(batch.rows * tokens, kBool);
  const TracedStorage row_ids = ops.Plain(batch.rows, kIndex);
  const TracedStorage head_ids = ops.Plain(1, kIndex);
  const TracedStorage query_ids = ops.Range(tokens);
  const TracedStorage key_ids = ops.Range(tokens);
  TracedStorage all = ops.Plain(1, kBool);
  TracedStorage compared = ops.Plain(tokens * tokens, kBool);
  const TracedStorage causal = ops.Plain(tokens * tokens, kBool);
  compared.Reset();
  all.Reset();
  const TracedStorage of_keys = ops.Plain(batch.rows * tokens, kBool);
  return ops.Plain(batch.rows * tokens * tokens, kBool);
}

TracedLinear DecoderHead(const ModelParameters& parameters, const ModelShape& shape,
                         const TaskHead& head, const TracedParameter& table) {
  if (head.kind == TaskHead::Kind::kSequenceClassification) {
    return parameters.Linear(ModulesOf(*ModelFamilyOf(shape.family)).classifier.output);
  }
  if (!shape.tied_head) return parameters.Linear("lm_head");
  return {.weight = table, .in_features = shape.hidden_size, .out_features = shape.vocab_size};
}

TracedTensor DecoderLoss(TraceOps& ops, const TracedTensor& hidden, const TaskHead& head,
                         const TracedLinear& output, const ModelBatch& batch) {
  const TracedTensor logits = ops.Linear(hidden, output);
  return head.kind == TaskHead::Kind::kSequenceClassification
             ? LossOfLastTokens(ops, logits, output.out_features, batch)
             : LossOfAllTokens(ops, logits, output.out_features, batch);
}

}  // namespace hpo
