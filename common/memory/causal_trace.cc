#include "common/memory/causal_trace.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kBool = 1;
constexpr int64_t kFloat = 4;

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

TracedLinear LanguageModelHead(const ModelParameters& parameters, const ModelShape& shape,
                               const TracedParameter& table) {
  if (!shape.tied_head) return parameters.Linear("lm_head");
  return {.weight = table, .in_features = shape.hidden_size, .out_features = shape.vocab_size};
}

TracedTensor LanguageModelLoss(TraceOps& ops, const TracedTensor& hidden, const TracedLinear& head,
                               const ModelBatch& batch) {
  ModelOps model_ops(ops);
  const int64_t tokens = batch.rows * batch.tokens;
  const TracedTensor logits = ops.Linear(hidden, head);
  const TracedTensor as_float = ops.Cast(logits, kFloat);
  const TracedStorage padded = model_ops.Plain(tokens + batch.rows, kIndex);
  const TracedStorage labels = model_ops.Plain(tokens, kIndex);
  return ops.CrossEntropy(as_float, tokens, head.out_features, labels);
}

}  // namespace hpo
