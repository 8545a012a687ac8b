// What the commands of `hpo fleet` do once their options are read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client/session.h"
#include "cli/fleet/engines/fleet_engine.h"
#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

// `hpo fleet slurm` and the like, as they stand on the command line.
struct FleetOptions {
  FleetPlan plan;
  std::string memory;
  std::string time;
  std::string partition;  // Slurm's
  bool submit = false;
};

// Prints the script of the fleet, or with `submit` has the engine start it. `notify`: for
// what the user should know and is no part of the script.
//   InvalidArgument  an option is wrong
//   codes of FleetEngine
absl::Status StartFleet(Session& session, FleetEngine& engine, const FleetOptions& options,
                        const Notifies& notify);

// Shows the workers of a fleet, or of each fleet how many it has.
//   NotFound  no such fleet: with how it has ended, where the engine knows
absl::Status ShowFleet(Session& session, FleetEngine& engine, const std::string& name);

absl::Status ScaleFleet(Session& session, FleetEngine& engine, const std::string& name,
                        int workers);

// Returns when no worker is left.
absl::Status StopFleet(Session& session, FleetEngine& engine, const std::string& name,
                       const std::string& patience);

// The plan that the options and the environment (HPO_JOIN, HPO_JOIN_FILE) make. `address`: of the
// session's server. `study`: empty for all. `join`: the value of --join.
absl::StatusOr<FleetPlan> MakePlan(const FleetOptions& options, const std::string& address,
                                   const std::string& study, const std::string& join);

}  // namespace hpo::cli
