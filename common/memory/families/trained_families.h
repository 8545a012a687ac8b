// The backbones of backbone_trace.h; each family in a file of its own.
#pragma once

#include <memory>

#include "common/memory/families/backbone_trace.h"
#include "common/memory/trace/model_ops.h"
#include "common/memory/trace/traced_device.h"

namespace hpo {

std::unique_ptr<BackboneTrace> MakeBertBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                     const ModelParameters& parameters);

std::unique_ptr<BackboneTrace> MakeDebertaBackboneTrace(TracedDevice& device,
                                                        const ModelShape& shape,
                                                        const ModelParameters& parameters);

std::unique_ptr<BackboneTrace> MakeGpt2BackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                     const ModelParameters& parameters);
std::unique_ptr<BackboneTrace> MakeLlamaBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                      const ModelParameters& parameters);

// What a backbone keeps on the device besides its parameters, made after these.
void KeepConstants(TracedDevice& device, const ModelShape& shape);

}  // namespace hpo
