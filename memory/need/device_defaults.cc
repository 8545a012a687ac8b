#include "memory/need/device_defaults.h"

namespace hpo::memory {

DeviceProfile DefaultDevice(absl::string_view kind, Bytes total) {
  DeviceProfile profile;
  profile.kind = std::string(kind);
  profile.total = total;
  if (kind == "cpu") {
    profile.name = "CPU budget";
    return profile;
  }
  profile.name = "CUDA card, shipped defaults";
  profile.base = kDefaultCudaBase;
  profile.workspace = kCudaWorkspace;
  return profile;
}

}  // namespace hpo::memory
