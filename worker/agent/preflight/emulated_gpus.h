// The GPUs of a dry run, as the emulator takes them (docs/EMULATOR.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol/worker_facts.h"

namespace hpo::agent {

// `own`, then those of `others` that a dry run for `own` answers for: of its compute capability and
// with no more threads, each shape once, at most kMostOthers.
std::vector<DeviceProfile> GpusOfDryRun(const DeviceProfile& own,
                                        const std::vector<DeviceProfile>& others);
constexpr size_t kMostOthers = 8;

// The name of the GPU `number` of those in the file: "gpu-0".
std::string EmulatedName(size_t number);

// The file that describes them; the value of HPO_EMULATED_GPUS is its path.
std::string DescribeEmulatedGpus(const std::vector<DeviceProfile>& gpus);

}  // namespace hpo::agent
