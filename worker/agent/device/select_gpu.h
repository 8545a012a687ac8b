// Which card a worker works on. Pure.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/device/gpu_probe.h"

namespace hpo::agent {

// The card that `selector` names: its number, or its UUID ("GPU-..." or the start of it).
//   NotFound         no such card; lists those there are
//   InvalidArgument  the start of several UUIDs
absl::StatusOr<GpuState> SelectGpu(std::span<const GpuState> gpus, const std::string& selector);

}  // namespace hpo::agent
