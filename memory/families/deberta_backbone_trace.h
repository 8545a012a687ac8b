// worker/trainer/models/deberta_model.cc and deberta_layer.cc. See backbone_trace.h.
#pragma once

#include <memory>

#include "memory/families/backbone_trace.h"

namespace hpo::memory {

std::unique_ptr<BackboneTrace> MakeDebertaBackboneTrace(TracedDevice& device,
                                                        const ModelShape& shape,
                                                        const ModelParameters& parameters);

}  // namespace hpo::memory
