// What is assumed of a device of which nothing has been measured.
#pragma once

#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/protocol/worker_facts.h"

namespace hpo::memory {

// Context and libraries of a torch process, whoever's step it runs: what the smallest of the
// published runs on an A100 leave above their segments (nvidia-smi, about torch 2.5).
constexpr Bytes kDefaultCudaBase = MiB(1429);
constexpr char kDefaultCudaBaseSource[] = "an A100 under torch 2.5, by nvidia-smi";

// What torch keeps for cuBLAS and cuBLASLt in forward's thread and in backward's: 8.125 and 1 MiB
// each; on Hopper, which takes most, 32 and 1.
constexpr Bytes kCudaWorkspace = 2 * (KiB(8320) + MiB(1));
constexpr Bytes kLargestCudaWorkspace = 2 * (MiB(32) + MiB(1));

// A card of `total` bytes with the base above and an A100's workspaces, or with `kind` "cpu" a
// budget of live bytes. Its name says that these are defaults.
DeviceProfile DefaultDevice(absl::string_view kind, Bytes total);

}  // namespace hpo::memory
