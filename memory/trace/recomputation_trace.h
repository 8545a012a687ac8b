// Gradient checkpointing as a StepTracer runs it: that of worker/trainer/models/layers/
// recomputation.h.
#pragma once

#include <functional>
#include <vector>

#include "memory/trace/traced_device.h"

namespace hpo::memory {

// Called twice; what it captures by value is held until its backward has run.
using TracedSegment = std::function<TracedTensor(const std::vector<TracedTensor>& inputs)>;

// segment(inputs); where operations are recorded only the inputs are kept, and backward runs the
// segment again. `has_parameters`: it uses parameters that are trained. `ops` outlives the tape.
TracedTensor RunRecomputed(TracedDevice& device, TracedSegment segment,
                           std::vector<TracedTensor> inputs, bool has_parameters);

}  // namespace hpo::memory
