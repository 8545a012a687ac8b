// What is assumed of a device of which nothing has been measured.
#pragma once

#include "absl/strings/string_view.h"
#include "common/bytes.h"
#include "common/worker_facts.h"

namespace hpo {

// Context and libraries of a torch process, whoever's step it runs: what the smallest of the
// published runs on an A100 leave above their segments (nvidia-smi, about torch 2.5); and cuBLAS
// workspaces.
constexpr Bytes kDefaultCudaBase = MiB(1429);
constexpr char kDefaultCudaBaseSource[] = "an A100 under torch 2.5, by nvidia-smi";
constexpr Bytes kDefaultCudaWorkspace = MiB(96);

// A card of `total` bytes with the defaults above, or with `kind` "cpu" a budget of live bytes. Its
// name says that these are defaults.
DeviceProfile DefaultDevice(absl::string_view kind, Bytes total);

}  // namespace hpo
