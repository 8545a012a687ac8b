// Llama and Qwen2: transformers/models/{llama,qwen2}/modeling_*.py, without a cache of keys.
// See model_trace.h.
#pragma once

#include <memory>

#include "memory/offline/traces/traced_model.h"

namespace hpo::memory {

std::unique_ptr<ModelTrace> MakeDecoderTrace(TracedDevice& device, const TracedModel& model);

}  // namespace hpo::memory
