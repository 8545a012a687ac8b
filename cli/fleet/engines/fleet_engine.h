// An engine that starts, restarts and ends the workers of a fleet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/fleet/engines/engine_program.h"
#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

enum class FleetWorkerState { kWaiting, kRunning, kEnding, kEnded };

// A worker of a fleet, as its engine sees it.
struct FleetWorker {
  std::string id;  // the engine's name for it: a task, an actor, a pod
  FleetWorkerState state = FleetWorkerState::kWaiting;
  std::string node;    // empty: none yet
  std::string reason;  // why it waits, in the engine's words; empty: not known
  std::optional<absl::Duration> running_for;
  std::optional<int64_t> restarts;  // nullopt: not known
  std::string name;                 // that the worker has at the server; empty: not known
  // Whether it waits or runs.
  bool IsLive() const {
    return state == FleetWorkerState::kWaiting || state == FleetWorkerState::kRunning;
  }
  bool operator==(const FleetWorker&) const = default;
};

// What an engine needs of this machine.
struct EngineMeans {
  RunsProgram run;
  // Waits for so long; false: the user wants the command to end.
  std::function<bool(absl::Duration)> pause;
  Notifies notify;
};

struct NamedWorker {
  std::string fleet;
  FleetWorker worker;
};

// What a submission left behind.
struct SubmittedFleet {
  std::string id;                  // the engine's
  std::string kept;                // the file of the script or manifest
  std::vector<std::string> notes;  // what the user should know
};

// Errors of every call but Script and name:
//   NotFound     the engine's program is not installed here
//   Unavailable  the engine does not answer; with its own words
class FleetEngine {
 public:
  virtual ~FleetEngine() = default;

  // "slurm"
  virtual std::string name() const = 0;

  // The script or manifest of the fleet.
  //   InvalidArgument  a value of the plan is none in the engine's grammar
  virtual absl::StatusOr<std::string> Script(const FleetPlan& plan) const = 0;

  // Has the engine start the fleet. Keeps the script in the folder of the plan, and the secret in a
  // file for its owner alone, if the engine's own means need one.
  //   AlreadyExists    a fleet of this name runs
  //   InvalidArgument  the engine rejects the fleet: with what to change; codes of Script
  virtual absl::StatusOr<SubmittedFleet> Submit(const FleetPlan& plan) = 0;

  // The workers of a fleet that have not ended; of all fleets of this user where `name` is empty.
  virtual absl::StatusOr<std::vector<NamedWorker>> List(const std::string& name) = 0;

  // How the last fleet of this name has ended, as a sentence that says where its log is. Empty: not
  // known.
  virtual absl::StatusOr<std::string> HowItEnded(const std::string& name) = 0;

  // Changes the number of workers that wait or run. What was done, as a sentence.
  //   NotFound  no such fleet
  virtual absl::StatusOr<std::string> Scale(const std::string& name, int workers) = 0;

  // Ends all workers: each of them saves and requeues its trial. Waits until none is left.
  //   DeadlineExceeded  some are left after `patience`
  virtual absl::Status Stop(const std::string& name, absl::Duration patience) = 0;
};

}  // namespace hpo::cli
