// How the workers of fleets are shown. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/fleet/engines/fleet_engine.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

// Each fleet as one line with its counts, or, where `names_workers`, as a table of its workers.
std::string FleetText(absl::string_view engine, const std::vector<NamedWorker>& workers,
                      bool names_workers, int columns);

// {"engine", "fleets": [{"name", "label", "counts": {STATE: N}, "workers": [{"id", "worker",
// "state", "node", "reason", "running_for_s", "restarts"}]}]}
nlohmann::ordered_json FleetJson(absl::string_view engine, const std::vector<NamedWorker>& workers);

// "waiting", "running", "ending" or "ended".
const char* Name(FleetWorkerState state);

}  // namespace hpo::cli
