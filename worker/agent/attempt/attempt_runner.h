// Runs one attempt in a trainer that is ready: hands over the job, passes measurements up and stop
// requests down, and decides what the attempt came to. Never fails: every way in which a trainer,
// the server or the worker can end is an AttemptEnd. One thread.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/attempt/running_state.h"
#include "worker/agent/attempt/trainer_slot.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/process/wake_up.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/lease_keeper.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {

// Everything an attempt works with. All outlive the attempt.
struct AttemptServices {
  CoordinatorClient& client;
  WorkerSession& session;
  LeaseKeeper& keeper;
  WakeUp& wake;  // notified by the keeper
  StopSignal& stop;
  TrainerSlot& slot;
  // The kernel's count of out-of-memory kills so far.
  std::function<int64_t()> count_oom_kills;
  // What the device needs for context and libraries (JobPlaces::base).
  Bytes base;
};

// A result for the outbox.
struct AttemptResult {
  FinishRequest finish;
  std::string best_path = {};  // where its best weights are; empty: it has told of none
};

// No result: the trial goes back to the server, for this reason.
struct ReturnedTrial {
  std::string why;
  std::string log_tail = {};  // FinishRequest::log_tail
};

// No result: the program cannot be started, whatever the trial; the line that says why.
struct UnstartableProgram {
  std::string why;
  std::string log_tail = {};  // FinishRequest::log_tail
};

// The trial belongs to another attempt now; nothing to tell.
struct LostLease {};

using AttemptEnd = std::variant<AttemptResult, ReturnedTrial, UnstartableProgram, LostLease>;

// The end of an attempt that cannot begin, since the study asks for what no worker may do.
AttemptEnd EndBeforeStart(const Assignment& assignment, const absl::Status& why);

// `job` is the assignment as the trainer gets it; its output_dir receives the attempt's part of the
// trainer's output as trainer.log.
AttemptEnd RunAttempt(const AttemptServices& services, const AttemptOptions& options,
                      const LeaseRef& lease, const TrainerJob& job);

}  // namespace hpo::agent
