// What `hpo memory status` shows of this machine. Pure: values in, text out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client/session.h"
#include "common/device/gpu_probe.h"
#include "common/device/host_memory.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

struct MemoryStatus {
  std::vector<GpuState> cards;
  std::string cards_note;  // why there are none
  HostMemory host;
  std::optional<CgroupMemory> cgroup;  // nullopt: no memory controller
};

nlohmann::ordered_json MemoryStatusJson(const MemoryStatus& status);
std::string MemoryStatusText(const MemoryStatus& status, int width);

// Memory of this machine: cards with the processes on them, host, control group. Needs no server,
// and no card.
absl::Status ShowMemoryStatus(Session& session);

}  // namespace hpo::cli
