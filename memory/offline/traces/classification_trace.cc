#include "memory/offline/traces/classification_trace.h"

#include "common/models/model_modules.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/loss_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

TracedTensor ClassifiedToken(TracedDevice& device, const ModelParameters& parameters,
                             const ModelShape& shape, const TracedTensor& hidden,
                             const ModelBatch& batch) {
  const ClassifierModules& head = ModulesOf(*ModelFamilyOf(shape.family)).classifier;
  TracedTensor x = ops::Select(device, hidden, batch.tokens);
  if (head.dropout_before_dense) x = ops::Dropout(device, x, shape.hidden_dropout);
  x = ops::Linear(device, x, parameters.Linear(head.dense));
  return ops::Activate(device, x, head.activation);
}

TracedTensor ClassificationLoss(TracedDevice& device, const ModelParameters& parameters,
                                const ModelShape& shape, TracedTensor token,
                                const ModelBatch& batch, int64_t num_labels) {
  const ClassifierModules& head = ModulesOf(*ModelFamilyOf(shape.family)).classifier;
  token = ops::Dropout(device, token, shape.hidden_dropout);
  const TracedTensor logits = ops::Linear(device, token, parameters.Linear(head.output));
  return ops::CrossEntropy(device, logits, batch.rows, num_labels);
}

}  // namespace hpo::memory
