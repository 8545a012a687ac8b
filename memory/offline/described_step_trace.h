// The allocation trace of a described training step, and the answer that follows from it.
// Pure; safe from any thread.
#pragma once

#include <string>
#include <vector>

#include "memory/allocator/allocation_trace.h"
#include "memory/offline/step_description.h"

namespace hpo::memory {

// From loading the weights to the end of the last step.
AllocationTrace TraceOfStep(const StepDescription& step);

// That, and the same steps after another beginning: what a run may as well do, and what may end in
// another layout of the cache.
std::vector<AllocationTrace> TracesOfStep(const StepDescription& step);

// Elements of all parameters.
int64_t NumParameters(const StepDescription& step);

struct StepEstimate {
  int64_t num_parameters = 0;
  BytesByClass by_class;  // of `tensors` at their peak
  Bytes tensors;          // bytes of tensors, each rounded up to 512, at their peak
  Bytes live_peak;        // torch's allocated_bytes.peak
  Bytes reserved_peak;    // without a limit
  // Smallest limit of the allocator at which the steps complete, whatever their beginning.
  Bytes needed_limit;
  Bytes device_peak;    // reserved_peak and the device's base
  Bytes device_needed;  // needed_limit and the device's base
  std::string peak_phase;
  // The beginnings end in reserved peaks further apart than 3 %: a block was or was not split.
  bool fragile = false;
  Bytes reserved_low;  // the lowest and the highest of them
  Bytes reserved_high;
  bool fits = true;  // device_needed <= total
};

// A few milliseconds.
StepEstimate EstimateStep(const StepDescription& step);

}  // namespace hpo::memory
