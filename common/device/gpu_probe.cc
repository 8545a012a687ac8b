#include "common/device/gpu_probe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hpo {

Bytes UsedByOthers(const GpuState& gpu, std::span<const int64_t> own_pids) {
  Bytes others = gpu.used;
  for (const GpuProcess& running : gpu.processes) {
    const bool own = std::find(own_pids.begin(), own_pids.end(), running.pid) != own_pids.end();
    if (own && running.used.has_value()) others -= *running.used;
  }
  return std::max(others, Bytes{});
}

std::string DescribeGpus(std::span<const GpuState> gpus) {
  if (gpus.empty()) return "none";
  return absl::StrJoin(gpus, ", ", [](std::string* out, const GpuState& gpu) {
    absl::StrAppend(out, gpu.index, ": ", gpu.name, " (", gpu.uuid, ", ", FormatBytes(gpu.total),
                    ")");
  });
}

}  // namespace hpo
