// What the decoders' traces share: the mask that hides later tokens, and a language model's loss.
// Source: masking_utils.py and loss/loss_utils.py of transformers 5.23.
#pragma once

#include "common/memory/model_ops.h"
#include "common/memory/model_trace.h"

namespace hpo {

// [rows, 1, tokens, tokens], one byte each: true where a token may look.
TracedStorage CausalMask(ModelOps& ops, const ModelBatch& batch);

// `table` where it is tied.
TracedLinear LanguageModelHead(const ModelParameters& parameters, const ModelShape& shape,
                               const TracedParameter& table);

// Of the last layer's output, which the caller holds to the end, with every token a label.
TracedTensor LanguageModelLoss(TraceOps& ops, const TracedTensor& hidden, const TracedLinear& head,
                               const ModelBatch& batch);

}  // namespace hpo
