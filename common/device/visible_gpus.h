// Which GPUs a process may use: what CUDA makes of CUDA_VISIBLE_DEVICES, over the GPUs that NVML
// lists. Batch systems and Ray hand out GPUs by this variable alone, so that whoever ignores it
// takes GPUs that were given to somebody else. Pure, but for ListVisible.
//
// The rule: entries separated by commas, each a number as nvidia-smi has it, a UUID or its
// beginning
// ("GPU-8f", "MIG-8f"). The list ends before the first entry that names no GPU; one that names a
// GPU twice is empty; without the variable every GPU is visible. A number or UUID of a GPU that is
// divided by MIG stands for its first MIG device. Several MIG devices may be listed, although one
// process of CUDA uses only the first: each gets a worker of its own.
// Source: CUDA C++ Programming Guide, "CUDA Environment Variables"; MIG User Guide, "Device
// Enumeration"; torch/cuda/__init__.py, _parse_visible_devices. Python: hpo/search.py; both read
// tests/golden/visible_gpus.json.
//
// Numbers are nvidia-smi's, in the order of PCI buses, as those that Slurm and Ray write are.
// CUDA's own order is another where GPUs differ and CUDA_DEVICE_ORDER is not PCI_BUS_ID.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/gpu_probe.h"

namespace hpo {

inline constexpr char kVisibleGpusVariable[] = "CUDA_VISIBLE_DEVICES";

struct VisibleGpus {
  std::vector<GpuState> gpus;  // in the order of the list
  // What was wrong with the list; empty: nothing. CUDA says nothing of it.
  std::string warning;
};

// The variable, and CUDA_DEVICE_ORDER; nullopt: it is not set.
struct VisibilityVariables {
  std::optional<std::string> visible;
  std::optional<std::string> order;
};
VisibilityVariables OwnVisibilityVariables();

VisibleGpus SelectVisible(std::span<const GpuState> gpus, const VisibilityVariables& variables);

// Those of this machine that this process may use. Codes: GpuProbe::List.
absl::StatusOr<VisibleGpus> ListVisible(GpuProbe& probe);

}  // namespace hpo
