// The seam between hpo-trainer, which links no CUDA library, and lib/hpo_cuda.so, which does.
// docs/adr/001-cuda-code-in-a-module.md says why.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo {

// Loads the module at the first call and opens card `index`. After that torch's CUDA kernels are
// registered in the process.
//   FailedPrecondition  see OpenDeviceMemory
absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenCudaMemory(int index);

// What the module exports, with C linkage, as `hpo_open_cuda_memory`: a new object, or null and a
// message of at most `error_size` bytes in `error`.
using OpenCudaMemoryFunction = DeviceMemory* (*)(int index, char* error, size_t error_size);

}  // namespace hpo
