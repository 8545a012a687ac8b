// Measures what a device holds beyond tensors, for memory estimates: hpo-trainer --profile-device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/device/gpu_probe.h"
#include "common/protocol/worker_facts.h"

namespace hpo::trainer {

// The profile of "cpu" or "cuda:N", source "measured". On a card, after the kernels that training
// runs have been loaded: base = what the driver counts as used by this process, less what torch's
// allocator holds; workspace = live bytes that stay. On a CPU both are 0. Opens the device, which
// may be open nowhere else in the process. Takes seconds.
//   InvalidArgument, FailedPrecondition  see OpenTrialDevice
//   Unavailable                          no NVML, or it does not know the card
absl::StatusOr<DeviceProfile> ProfileDevice(const std::string& device,
                                            const std::string& torch_build);

// Base bytes of process `pid` from two readings of its card, before the process touched it and
// after, and what its allocator holds (`reserved`). By the process's own entry; where the driver
// does not list it (containers), by the rise of what is in use, which is right while nobody else's
// use changes. Never negative.
Bytes BaseBytes(const GpuState& before, const GpuState& after, int64_t pid, Bytes reserved);

// The card named `uuid` in `cards`; nullopt without one. CUDA names a MIG device as if it were a
// GPU.
std::optional<GpuState> FindCard(std::span<const GpuState> cards, const std::string& uuid);

}  // namespace hpo::trainer
