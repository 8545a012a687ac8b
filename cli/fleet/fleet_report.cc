#include "cli/fleet/fleet_report.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr FleetWorkerState kStates[] = {FleetWorkerState::kRunning, FleetWorkerState::kWaiting,
                                        FleetWorkerState::kEnding, FleetWorkerState::kEnded};

// By the fleet's name.
using Fleets = std::map<std::string, std::vector<FleetWorker>>;

Fleets ByName(const std::vector<NamedWorker>& workers) {
  Fleets fleets;
  for (const NamedWorker& named : workers) fleets[named.fleet].push_back(named.worker);
  return fleets;
}

int CountOf(const std::vector<FleetWorker>& workers, FleetWorkerState state) {
  int count = 0;
  for (const FleetWorker& worker : workers) count += worker.state == state ? 1 : 0;
  return count;
}

// "6 running, 2 waiting".
std::string CountsText(const std::vector<FleetWorker>& workers) {
  std::vector<std::string> counts;
  for (const FleetWorkerState state : kStates) {
    const int count = CountOf(workers, state);
    if (count > 0) counts.push_back(absl::StrCat(count, " ", Name(state)));
  }
  return absl::StrJoin(counts, ", ");
}

std::string TableOf(const std::vector<FleetWorker>& workers, int columns) {
  Table table({{.title = "WORKER"},
               {.title = "STATE"},
               {.title = "NODE"},
               {.title = "RUNNING", .align = Align::kRight},
               {.title = "RESTARTS", .align = Align::kRight},
               {.title = "REASON"}});
  for (const FleetWorker& worker : workers) {
    table.AddRow({worker.name.empty() ? worker.id : worker.name, Name(worker.state),
                  worker.node.empty() ? "-" : worker.node,
                  worker.running_for ? ShortDuration(*worker.running_for) : "-",
                  worker.restarts ? absl::StrCat(*worker.restarts) : "-", worker.reason});
  }
  return table.Render(columns);
}

Json JsonOf(const FleetWorker& worker) {
  Json json = {{"id", worker.id},    {"worker", nullptr}, {"state", Name(worker.state)},
               {"node", nullptr},    {"reason", nullptr}, {"running_for_s", nullptr},
               {"restarts", nullptr}};
  if (!worker.name.empty()) json["worker"] = worker.name;
  if (!worker.node.empty()) json["node"] = worker.node;
  if (!worker.reason.empty()) json["reason"] = worker.reason;
  if (worker.running_for) json["running_for_s"] = absl::ToInt64Seconds(*worker.running_for);
  if (worker.restarts) json["restarts"] = *worker.restarts;
  return json;
}

}  // namespace

const char* Name(FleetWorkerState state) {
  switch (state) {
    case FleetWorkerState::kWaiting:
      return "waiting";
    case FleetWorkerState::kRunning:
      return "running";
    case FleetWorkerState::kEnding:
      return "ending";
    case FleetWorkerState::kEnded:
      return "ended";
  }
  return "";
}

std::string FleetText(absl::string_view engine, const std::vector<NamedWorker>& workers,
                      bool names_workers, int columns) {
  std::string text;
  for (const auto& [name, own] : ByName(workers)) {
    absl::StrAppend(&text, "fleet ", name, " on ", engine, ": ", CountsText(own), "\n");
    if (names_workers) absl::StrAppend(&text, TableOf(own, columns));
  }
  return text;
}

nlohmann::ordered_json FleetJson(absl::string_view engine,
                                 const std::vector<NamedWorker>& workers) {
  Json fleets = Json::array();
  for (const auto& [name, own] : ByName(workers)) {
    Json fleet = {{"name", name}, {"label", FleetLabel(name)}};
    for (const FleetWorkerState state : kStates) {
      fleet["counts"][Name(state)] = CountOf(own, state);
    }
    fleet["workers"] = Json::array();
    for (const FleetWorker& worker : own) fleet["workers"].push_back(JsonOf(worker));
    fleets.push_back(std::move(fleet));
  }
  return {{"engine", std::string(engine)}, {"fleets", std::move(fleets)}};
}

}  // namespace hpo::cli
