// The worker's main loop: register, take a trial, run it, tell, again. One thread, which also owns
// the trainer process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_line/exit_status.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/attempt/attempt_runner.h"
#include "worker/agent/attempt/checkpoint_folders.h"
#include "worker/agent/attempt/outbox.h"
#include "worker/agent/attempt/result_courier.h"
#include "worker/agent/attempt/trainer_slot.h"
#include "worker/agent/catalog/data_catalog.h"
#include "worker/agent/catalog/model_catalog.h"
#include "worker/agent/device/capacity.h"
#include "worker/agent/device/device_profiles.h"
#include "worker/agent/preflight/preflight_thread.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

// A command with placeholders that runs as the trainer.
struct TrialCommand {
  std::string option;  // where it is from, for messages; empty: there is none
  std::string text;
  std::string metrics_file;  // has placeholders, too
};

struct AgentOptions {
  std::string worker;         // human name
  std::string version;        // of hpo-worker
  std::string device;         // as the trainer gets it: "cpu", "cuda:0"
  int64_t gpus = 1;           // WorkerFacts
  std::string instance_file;  // the instance key of the last process that registered from here
  std::string runs_folder;    // attempts' files go to STUDY/TRIAL-ATTEMPT below it
  std::string server;         // for messages
  // The studies that it serves. Empty: every one; but with a trainer of the user's own, which is a
  // study's, the one that there was when the worker first saw only one.
  std::vector<std::string> studies;
  bool own_trainer = false;
  TrialCommand command;
  std::optional<int64_t> max_trials;
  // Trained models that stay on this disk, of each study the best; nullopt: all.
  std::optional<int64_t> num_kept_models = 1;
  CheckpointOptions checkpoints;
  bool stay = false;  // go on when all studies are finished
  // Ends after so long without a trial; nullopt: never for that.
  std::optional<absl::Duration> max_idle = std::nullopt;
  // Before the first contact; afterwards the worker waits as long as it takes.
  absl::Duration connect_timeout = absl::Minutes(5);
  absl::Duration acquire_wait = absl::Seconds(30);
  absl::Duration first_retry = absl::Milliseconds(500);
  absl::Duration longest_retry = absl::Seconds(10);
  AttemptOptions attempt;
  CourierOptions courier;
};

// All outlive the loop.
struct AgentServices {
  CoordinatorClient& client;            // the loop's own connection
  CoordinatorClient& heartbeat_client;  // another
  TrainerLauncher& launcher;
  DeviceCapacity& capacity;
  DataCatalog& data;
  ModelCatalog& models;
  Outbox& outbox;
  StopSignal& stop;
  // Whether the server does not let this worker in any more; null: it always does.
  std::function<bool()> is_refused;
  std::function<int64_t()> count_oom_kills;
  DeviceProfiles* device_profiles = nullptr;  // null: there is nothing to measure
  PreflightServices* preflight = nullptr;     // null: configurations are not dry-run here
};

// Runs until there is a reason to end. Which failed call is one: rpc_reaction.h. Messages go to the
// log; errors that end the worker are the status, with the exit code to use.
struct AgentResult {
  ExitCode code = ExitCode::kDone;
  absl::Status status;  // why, when it is not OK
};

// That of a worker which is told to stop before it has registered.
inline AgentResult StoppedAtStart(StopLevel level) {
  return {level == StopLevel::kNow ? ExitCode::kKilled : ExitCode::kTryAgain, absl::OkStatus()};
}

// That of a worker whose studies have all ended; says why in the log.
AgentResult EndOfStudies(const std::vector<FinishedStudy>& studies);

AgentResult RunAgent(const AgentServices& services, const AgentOptions& options,
                     const TrainerSlotOptions& slot_options);

}  // namespace hpo::agent
