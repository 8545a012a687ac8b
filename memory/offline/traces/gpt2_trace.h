// GPT-2: transformers/models/gpt2/modeling_gpt2.py, without a cache of keys.
// See model_trace.h.
#pragma once

#include <memory>

#include "memory/offline/traces/traced_model.h"

namespace hpo::memory {

std::unique_ptr<ModelTrace> MakeGpt2Trace(TracedDevice& device, const TracedModel& model);

}  // namespace hpo::memory
