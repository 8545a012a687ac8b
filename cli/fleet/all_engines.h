// The engines by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// In the order in which they are looked for.
std::vector<std::string> EngineNames();

// With programs of this machine and its user.
//   InvalidArgument  no such engine
absl::StatusOr<std::unique_ptr<FleetEngine>> MakeEngine(const std::string& name, EngineMeans means);

// The engine of a fleet that is named without one: that of the only engine whose program is in
// PATH, or else the first one that lists a fleet of this name (any fleet where `fleet` is empty).
//   NotFound     no engine's program is in PATH, or no engine has the fleet: with how it has ended
//   Unavailable  no engine that could be asked has it, and others could not be asked
absl::StatusOr<std::unique_ptr<FleetEngine>> FindEngine(EngineMeans means,
                                                        const std::string& fleet);

}  // namespace hpo::cli
