// What is assumed of a device of which nothing has been measured.
#pragma once

#include "absl/strings/string_view.h"
#include "common/bytes.h"
#include "common/worker_facts.h"

namespace hpo {

// Context and libraries of a LibTorch process (CUDA 13 on Hopper: about 0.5 GiB), and cuBLAS
// workspaces.
constexpr Bytes kDefaultCudaBase = MiB(640);
constexpr Bytes kDefaultCudaWorkspace = MiB(96);

// A card of `total` bytes with the defaults above, or with `kind` "cpu" a budget of live bytes. Its
// name says that these are defaults.
DeviceProfile DefaultDevice(absl::string_view kind, Bytes total);

}  // namespace hpo
