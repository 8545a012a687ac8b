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
// Each is one worker's. `gpus` are all of the machine.
//   NotFound            there is no such GPU, or none at all; lists those there are
//   FailedPrecondition  the variable hides it, or hides all; says what the variable is
//   InvalidArgument     the beginning of several UUIDs, or the number of several MIG devices
absl::StatusOr<VisibleGpus> SelectGpus(std::span<const GpuState> gpus,
                                       const VisibilityVariables& variables,
                                       const std::string& selector);

}  // namespace hpo::agent
