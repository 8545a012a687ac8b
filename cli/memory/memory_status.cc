// Tested by tests/cli/memory/memory_commands_test.cc.
// `hpo memory status`.
#include "cli/memory/memory_status.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client/terminal.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/device/nvml.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<Bytes>& size) { return size ? Json(size->count) : Json(nullptr); }

std::string ProcessTable(const std::vector<GpuState>& cards, int width) {
  Table table(
      {{"CARD", Align::kRight}, {"PID", Align::kRight}, {"PROGRAM"}, {"USED", Align::kRight}});
  for (const GpuState& card : cards) {
    for (const GpuProcess& process : card.processes) {
      table.AddRow({absl::StrCat(card.index), absl::StrCat(process.pid),
                    process.name.empty() ? "-" : process.name,
                    process.used ? FormatBytes(*process.used) : "not told"});
    }
  }
  return table.Render(width);
}

std::string CardTable(const std::vector<GpuState>& cards, int width) {
  Table table({{"CARD", Align::kRight},
               {"NAME"},
               {"TOTAL", Align::kRight},
               {"USED", Align::kRight},
               {"FREE", Align::kRight},
               {"DRIVER"}});
  for (const GpuState& card : cards) {
    table.AddRow({absl::StrCat(card.index), card.name, FormatBytes(card.total),
                  FormatBytes(card.used), FormatBytes(card.free), card.driver});
  }
  return table.Render(width);
}

bool AnyProcess(const std::vector<GpuState>& cards) {
  for (const GpuState& card : cards) {
    if (!card.processes.empty()) return true;
  }
  return false;
}

absl::Status ReadCards(MemoryStatus& status) {
  const auto probe = NvmlProbe::Create();
  HPO_RETURN_IF_ERROR(probe.status());
  HPO_ASSIGN_OR_RETURN(status.cards, (*probe)->List());
  return absl::OkStatus();
}

}  // namespace

Json MemoryStatusJson(const MemoryStatus& status) {
  Json cards = Json::array();
  for (const GpuState& card : status.cards) {
    Json processes = Json::array();
    for (const GpuProcess& process : card.processes) {
      processes.push_back(
          {{"pid", process.pid}, {"program", process.name}, {"used_bytes", OrNull(process.used)}});
    }
    cards.push_back({{"index", card.index},
                     {"name", card.name},
                     {"uuid", card.uuid},
                     {"driver", card.driver},
                     {"total_bytes", card.total.count},
                     {"used_bytes", card.used.count},
                     {"free_bytes", card.free.count},
                     {"processes", std::move(processes)}});
  }
  Json cgroup = nullptr;
  if (status.cgroup.has_value()) {
    cgroup = {{"limit_bytes", OrNull(status.cgroup->limit)},
              {"used_bytes", status.cgroup->used.count},
              {"oom_kills", status.cgroup->oom_kills}};
  }
  return {{"cards", std::move(cards)},
          {"cards_note", status.cards_note},
          {"host",
           {{"total_bytes", status.host.total.count},
            {"available_bytes", status.host.available.count}}},
          {"cgroup", std::move(cgroup)}};
}

std::string MemoryStatusText(const MemoryStatus& status, int width) {
  std::string text;
  if (status.cards.empty()) {
    absl::StrAppend(&text, "cards    none",
                    status.cards_note.empty() ? "" : ": " + Printable(status.cards_note), "\n");
  } else {
    absl::StrAppend(&text, CardTable(status.cards, width), "\n");
    if (AnyProcess(status.cards)) absl::StrAppend(&text, ProcessTable(status.cards, width), "\n");
  }
  absl::StrAppend(&text, "host     ", FormatBytes(status.host.available), " of ",
                  FormatBytes(status.host.total), " available\n");
  if (!status.cgroup.has_value()) return absl::StrCat(text, "cgroup   none\n");
  const CgroupMemory& cgroup = *status.cgroup;
  absl::StrAppend(&text, "cgroup   ", FormatBytes(cgroup.used), " used of ",
                  cgroup.limit ? FormatBytes(*cgroup.limit) : "no limit");
  if (cgroup.oom_kills > 0) absl::StrAppend(&text, ", ", cgroup.oom_kills, " processes killed");
  return absl::StrCat(text, "\n");
}

absl::Status ShowMemoryStatus(Session& session) {
  MemoryStatus status;
  if (const absl::Status read = ReadCards(status); !read.ok()) {
    status.cards_note = std::string(read.message());
  }
  const HostMemoryReader reader;
  HPO_ASSIGN_OR_RETURN(status.host, reader.ReadHost());
  if (absl::StatusOr<CgroupMemory> cgroup = reader.ReadCgroup(); cgroup.ok()) {
    status.cgroup = *cgroup;
  }
  if (session.json) {
    PrintJson(MemoryStatusJson(status), session.out);
  } else {
    session.out << MemoryStatusText(status, session.terminal.columns);
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
