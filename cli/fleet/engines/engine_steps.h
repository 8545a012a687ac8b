// What engines do alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// An engine in messages.
struct EngineWords {
  absl::string_view name;     // "Slurm"
  absl::string_view missing;  // what to do where its program is not in PATH
  absl::string_view slow;     // message to the user where it takes seconds; empty: none
};

// The longest time in which an engine's program lists workers.
inline constexpr absl::Duration kListPatience = absl::Minutes(2);

// What the engine's program printed.
//   NotFound     it is not in PATH
//   Unavailable  it failed: with what it says; or it took longer than `patience`
absl::StatusOr<std::string> RunOf(const EngineMeans& means, const EngineWords& engine,
                                  const std::vector<std::string>& words,
                                  absl::Duration patience = absl::InfiniteDuration());

// Lines of shell that a user has given, by the shell's own check. OK where there is no bash.
//   InvalidArgument  --setup: with what bash says
absl::Status CheckSetup(const EngineMeans& means, const FleetPlan& plan);

// "1 worker" or "2 workers".
std::string WorkersText(size_t count);

// The number of workers that wait or run.
size_t NumLive(const std::vector<NamedWorker>& workers);

// "asked to have 2 workers", and what becomes of those that are left out, if there were more.
std::string ResizedText(size_t before, size_t wanted, absl::string_view left_out);

absl::Status NoSuchFleet(const EngineWords& engine, const std::string& name);

// OK, or where `before` has workers of the plan's name:
//   AlreadyExists  with what to do
absl::Status CheckIsNew(const EngineWords& engine, const FleetPlan& plan,
                        const std::vector<NamedWorker>& before);

// Why workers on other machines cannot reach the server; empty: nothing is known against it.
std::vector<std::string> NotesOnServer(const FleetPlan& plan);

// Calls `end` with the workers that are left, again and again while some of them wait or run, until
// no worker of the fleet is left.
//   NotFound          there is none at the beginning
//   DeadlineExceeded  some are left after `patience`, or the user wants the command to end
//   codes of `end` and of FleetEngine::List
absl::Status EndAll(FleetEngine& engine, const EngineMeans& means, const EngineWords& words,
                    const std::string& name, absl::Duration patience,
                    const std::function<absl::Status(const std::vector<NamedWorker>&)>& end);

}  // namespace hpo::cli
