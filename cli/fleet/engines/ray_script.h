// The Python script of a fleet on Ray. Pure.
#pragma once

#include <string>

#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

// A script that runs the fleet by hpo.ray.run until its workers have ended. With a secret, it reads
// the file `join` in its own folder.
std::string RayScript(const FleetPlan& plan);

}  // namespace hpo::cli
