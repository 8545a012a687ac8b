// A recording as it would be on a GPU of another shape.
#pragma once

#include <cstdint>

#include "memory/replay/recorded_events.h"

namespace hpo::memory {

struct RecordingOnGpu {
  RecordedDevice device;
  // Number of allocations whose size there is not known: a reduction that was not recorded, or one
  // that took all blocks that the recorded GPU runs at once and may take more on a larger one.
  int64_t num_unknown_sizes = 0;
};

// The recording, with the sizes of what depends on the GPU's shape: where blocks share results of
// reductions, and the workspace that torch gives cuBLAS. Unchanged where either shape is all 0.
// Nothing is unknown of a GPU that runs no more blocks at once than the recorded one. Whether other
// kernels run there is for python/dryrun/hpo_dryrun/same_kernels.py to say.
// Source: torch 2.11, aten/src/ATen/native/cuda/Reduce.cuh (setReduceConfig) and
// aten/src/ATen/cuda/CublasHandlePool.cpp.
RecordingOnGpu OnGpu(const RecordedDevice& recorded, const GpuShape& gpu);

}  // namespace hpo::memory
