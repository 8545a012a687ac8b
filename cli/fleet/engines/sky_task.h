// The task of a fleet on SkyPilot. Pure.
#pragma once

#include <string>

#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

// A managed job that runs one worker. It is launched once for each worker, with another
// HPO_WORKER_NAME. The lines of the plan's setup run once on each machine, before the worker.
// Sources: SkyPilot's task YAML; common/command_line/exit_status.h.
std::string SkyTask(const FleetPlan& plan);

}  // namespace hpo::cli
