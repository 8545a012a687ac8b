#include "common/memory/families/classification_trace.h"

#include "common/models/model_modules.h"

namespace hpo {

TracedTensor ClassifiedToken(TraceOps& ops, const ModelParameters& parameters,
                             const ModelShape& shape, const TracedTensor& hidden,
                             const ModelBatch& batch) {
  const ClassifierModules& head = ModulesOf(*ModelFamilyOf(shape.family)).classifier;
  TracedTensor x = ops.Select(hidden, batch.tokens);
  if (head.dropout_before_dense) x = ops.Dropout(x, shape.hidden_dropout);
  x = ops.Linear(x, parameters.Linear(head.dense));
  return ops.Activate(x, head.activation);
}

TracedTensor ClassificationLoss(TraceOps& ops, const ModelParameters& parameters,
                                const ModelShape& shape, TracedTensor token,
                                const ModelBatch& batch, int64_t num_labels) {
  const ClassifierModules& head = ModulesOf(*ModelFamilyOf(shape.family)).classifier;
  token = ops.Dropout(token, shape.hidden_dropout);
  const TracedTensor logits = ops.Linear(token, parameters.Linear(head.output));
  return ops.CrossEntropy(logits, batch.rows, num_labels);
}

}  // namespace hpo
