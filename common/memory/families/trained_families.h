// The backbones of backbone_trace.h; each family in a file of its own.
#pragma once

#include <memory>

#include "common/memory/families/backbone_trace.h"

namespace hpo {

std::unique_ptr<BackboneTrace> MakeBertBackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                     const ModelParameters& parameters);

std::unique_ptr<BackboneTrace> MakeDebertaBackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                        const ModelParameters& parameters);

std::unique_ptr<BackboneTrace> MakeGpt2BackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                     const ModelParameters& parameters);
std::unique_ptr<BackboneTrace> MakeLlamaBackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                      const ModelParameters& parameters);

// What a backbone keeps on the device besides its parameters, made after these.
void KeepConstants(TraceOps& ops, const ModelShape& shape);

}  // namespace hpo
