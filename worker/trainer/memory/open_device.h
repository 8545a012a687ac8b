// Memory of a device by its name: "cpu", the counting allocator, or "cuda:N", the caching
// allocator.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/trainer/memory/allocator_log.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {

// At most one object for each device lives at a time. For CUDA lib/hpo_cuda.so beside the program's
// folder is loaded (docs/adr/001-cuda-code-in-a-module.md). Throws what torch throws where a card
// fails.
//   InvalidArgument     not such a name
//   FailedPrecondition  no module, CUDA library, driver or card; says what to do
absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenDeviceMemory(const std::string& device);

// The counting allocator's sizes are as counted.
//   InvalidArgument, FailedPrecondition  see OpenDeviceMemory
absl::StatusOr<std::unique_ptr<AllocatorLog>> OpenAllocatorLog(const std::string& device);

}  // namespace hpo::trainer
