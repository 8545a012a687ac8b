// The device a trainer process trains on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/trainer/memory/device_memory.h"
#include "worker/trainer/torch_headers.h"

namespace hpo {

struct TrialDevice {
  torch::Device device;
  std::unique_ptr<DeviceMemory> memory;
  // Live bytes of the idle process; after every trial they are this again.
  Bytes baseline;
};

// Opens "cpu" or "cuda:N" and runs a small forward and backward on it, so that what libraries keep
// for good (cuBLAS workspaces, thread pools) is there before the baseline is taken.
//   InvalidArgument, FailedPrecondition  see OpenDeviceMemory
absl::StatusOr<TrialDevice> OpenTrialDevice(const std::string& name);

}  // namespace hpo
