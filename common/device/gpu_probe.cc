#include "common/device/gpu_probe.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hpo {

std::string DescribeGpus(std::span<const GpuState> gpus) {
  if (gpus.empty()) return "none";
  return absl::StrJoin(gpus, ", ", [](std::string* out, const GpuState& gpu) {
    absl::StrAppend(out, gpu.index, ": ", gpu.name, " (", gpu.uuid, ", ", FormatBytes(gpu.total),
                    ")");
  });
}

}  // namespace hpo
