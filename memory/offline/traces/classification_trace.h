// A sequence classifier's head and loss on the last hidden states, as Hugging Face runs them
// (common/models/model_modules.h).
#pragma once

#include "memory/offline/traces/model_trace.h"
#include "memory/ops/model_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// The token of each row that is classified, through the head's first layer: [rows, width].
// `hidden`: the last layer's output, [rows, tokens, width], which the caller holds to the end.
TracedTensor ClassifiedToken(TracedDevice& device, const ModelParameters& parameters,
                             const ModelShape& shape, const TracedTensor& hidden,
                             const ModelBatch& batch);

TracedTensor ClassificationLoss(TracedDevice& device, const ModelParameters& parameters,
                                const ModelShape& shape, TracedTensor token,
                                const ModelBatch& batch, int64_t num_labels);

}  // namespace hpo::memory
