// GPU telemetry through NVIDIA's management library, found at run time: the programs start, and say
// so in one line, where there is no driver.
// Source of the declarations: NVML API reference (nvml.h), names and layouts as of driver 580; the
// newest version of each call is taken, an older one where the driver lacks it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/gpu_probe.h"

namespace hpo {

// Owns the loaded library: initialised by Create, shut down by the destructor.
class NvmlProbe final : public GpuProbe {
 public:
  // `library` is a file name for the dynamic linker, or a path.
  //   Unavailable         there is no such library, or it finds no driver or no permission
  //   FailedPrecondition  the library lacks a call that this needs; names it
  static absl::StatusOr<std::unique_ptr<NvmlProbe>> Create(
      const std::string& library = "libnvidia-ml.so.1");

  ~NvmlProbe() override;
  NvmlProbe(const NvmlProbe&) = delete;
  NvmlProbe& operator=(const NvmlProbe&) = delete;

  absl::StatusOr<std::vector<GpuState>> List() override;
  absl::StatusOr<GpuState> Read(const std::string& uuid) override;

 private:
  struct Library;
  explicit NvmlProbe(std::unique_ptr<Library> library);

  const std::unique_ptr<Library> library_;
};

}  // namespace hpo
