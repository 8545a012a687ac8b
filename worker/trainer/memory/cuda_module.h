// The seam between hpo-trainer, which links no CUDA library, and lib/hpo_cuda.so, which does.
// docs/adr/001-cuda-code-in-a-module.md says why.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/trainer/memory/allocator_log.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {

// Loads the module at the first call and opens card `index`. After that torch's CUDA kernels are
// registered in the process. Throws what torch throws where the card fails.
//   FailedPrecondition  see OpenDeviceMemory
absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenCudaMemory(int index);

// The same for the log of its allocator. The card's memory is open already.
absl::StatusOr<std::unique_ptr<AllocatorLog>> OpenCudaLog(int index);

// What the module exports, with C linkage, as `hpo_open_cuda_memory` and `hpo_open_cuda_log`: a new
// object, or null and a message of at most `error_size` bytes in `error`. Exceptions of torch pass
// through.
template <typename T>
using OpenCudaFunction = T* (*)(int index, char* error, size_t error_size);

}  // namespace hpo::trainer
