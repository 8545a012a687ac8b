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
  // Losses are read when somebody asks for them, and not at every step. So on a card, where reading
  // waits for all that is queued.
  bool reads_late = false;
};

// A small forward and backward, so that what libraries keep for good (cuBLAS workspaces, thread
// pools) is there. Throws what torch throws.
void WarmUp(torch::Device device);

// Opens "cpu" or "cuda:N" and warms it up before the baseline is taken.
//   InvalidArgument, FailedPrecondition  see OpenDeviceMemory
absl::StatusOr<TrialDevice> OpenTrialDevice(const std::string& name);

}  // namespace hpo
