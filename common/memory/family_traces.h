// The models of model_trace.h; each kind in a file of its own.
#pragma once

#include <memory>
#include <vector>

#include "common/memory/model_ops.h"
#include "common/memory/model_trace.h"

namespace hpo {

// `tensors`: ParameterTensors(shape, head); heads as MakeModelTrace takes them.
std::unique_ptr<ModelTrace> MakeEncoderTrace(TraceOps& ops, const ModelShape& shape,
                                             const TaskHead& head,
                                             const std::vector<ParameterTensor>& tensors);
std::unique_ptr<ModelTrace> MakeDebertaTrace(TraceOps& ops, const ModelShape& shape,
                                             const TaskHead& head,
                                             const std::vector<ParameterTensor>& tensors);
std::unique_ptr<ModelTrace> MakeDecoderTrace(TraceOps& ops, const ModelShape& shape,
                                             const std::vector<ParameterTensor>& tensors,
                                             const TracedAdapters& adapters);
std::unique_ptr<ModelTrace> MakeGpt2Trace(TraceOps& ops, const ModelShape& shape,
                                          const std::vector<ParameterTensor>& tensors,
                                          const TracedAdapters& adapters);

}  // namespace hpo
