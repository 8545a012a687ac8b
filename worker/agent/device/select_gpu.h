// Which GPUs a worker works on. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/visible_gpus.h"

namespace hpo::agent {

// The GPUs that `selector`, the value of --gpu, names among those that CUDA_VISIBLE_DEVICES shows:
//   "visible", "all"  each of them, in the variable's order
//   a number          as nvidia-smi has it; where the variable is set, the place in its list, from
//   0 a UUID            "GPU-..." or "MIG-...", or the beginning of it
//   several of these, with commas between `gpus` are all of the machine.
//   NotFound            there is no such GPU, or none at all; lists those there are
//   FailedPrecondition  the variable hides it, or hides all; says what the variable is
//   InvalidArgument     the beginning of several UUIDs, or the number of several MIG devices
absl::StatusOr<VisibleGpus> SelectGpus(std::span<const GpuState> gpus,
                                       const VisibilityVariables& variables,
                                       const std::string& selector);

// Their UUIDs, as CUDA_VISIBLE_DEVICES and --gpu list them.
std::string UuidsOf(std::span<const GpuState> gpus);

// The GPUs in sets of `size`, in their order: each set is one worker's, and its trials take all of
// it. GPUs that are left over are in no set.
//   FailedPrecondition  there are fewer than `size`, or MIG devices, of which a process uses one
absl::StatusOr<std::vector<std::vector<GpuState>>> SetsOfGpus(std::span<const GpuState> gpus,
                                                              int size);

}  // namespace hpo::agent
