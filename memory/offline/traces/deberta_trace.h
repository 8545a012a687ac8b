// DeBERTa v2 and v3: transformers/models/deberta_v2/modeling_deberta_v2.py. Its attention is
// written out: scores of contents, of contents with positions and of positions with contents, each
// of heads x tokens x tokens, and the two last once more over every relative position.
// See model_trace.h.
#pragma once

#include <memory>

#include "memory/offline/traces/traced_model.h"

namespace hpo::memory {

std::unique_ptr<ModelTrace> MakeDebertaTrace(TracedDevice& device, const TracedModel& model);

}  // namespace hpo::memory
