// What the decoders' traces share: the mask that hides later tokens, the heads and their losses.
// Source: masking_utils.py, loss/loss_utils.py and GenericForSequenceClassification in
// modeling_layers.py of transformers 5.23.
#pragma once

#include "common/memory/families/model_trace.h"
#include "common/memory/trace/linear_ops.h"
#include "common/memory/trace/model_ops.h"
#include "common/memory/trace/traced_device.h"

namespace hpo {

// [rows, 1, tokens, tokens], one byte each: true where a token may look.
TracedStorage CausalMask(TracedDevice& device, const ModelBatch& batch);

// A language model's, which is `table` where it is tied, or a classifier's.
TracedLinear DecoderHead(const ModelParameters& parameters, const ModelShape& shape,
                         const TaskHead& head, const TracedParameter& table);

// Of the last layer's output, which the caller holds to the end: over every token a label, or over
// the last token of each row.
TracedTensor DecoderLoss(TracedDevice& device, const TracedTensor& hidden, const TaskHead& head,
                         const TracedLinear& output, const ModelBatch& batch);

}  // namespace hpo
