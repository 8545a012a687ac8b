// worker/trainer/models/gpt2_model.cc and llama_model.cc. See backbone_trace.h.
#pragma once

#include <memory>

#include "memory/families/backbone_trace.h"

namespace hpo::memory {

std::unique_ptr<BackboneTrace> MakeGpt2BackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                     const ModelParameters& parameters);

std::unique_ptr<BackboneTrace> MakeLlamaBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                      const ModelParameters& parameters);

}  // namespace hpo::memory
