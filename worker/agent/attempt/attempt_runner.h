// Runs one attempt in a trainer that is ready: hands over the job, passes measurements up and stop
// requests down, and decides what the attempt came to. Never fails: every way in which a trainer,
// the server or the worker can end is an AttemptEnd. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/attempt/trainer_slot.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/process/wake_up.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/lease_keeper.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {

struct AttemptOptions {
  // From a stop request to SIGKILL: what the trainer says that it takes to end
  // (ProgressMessage::stop_time), but at least the one and at most the other.
  absl::Duration stop_grace = absl::Seconds(30);
  absl::Duration longest_stop_grace = absl::Hours(1);
  // From an outcome line of a trainer that is not reused, or a closed channel, to SIGKILL.
  absl::Duration exit_grace = absl::Seconds(10);
  // Between reports while the server is away.
  absl::Duration first_report_retry = absl::Milliseconds(500);
  absl::Duration longest_report_retry = absl::Seconds(10);
};

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

// Exactly one of the four.
struct AttemptEnd {
  // A result for the outbox.
  std::optional<FinishRequest> finish;
  // With it: where the trainer has left its best weights; empty: it has told of none.
  std::string best_path;
  // No result: give the trial back, for this reason; empty: no.
  std::string give_back;
  // No result: the program cannot be started, whatever the trial; the line that says why.
  std::string cannot_start;
  // The trial belongs to another attempt now; nothing to tell.
  bool lease_lost = false;
};

// The end of an attempt that cannot begin, since the study asks for what no worker may do.
AttemptEnd EndBeforeStart(const Assignment& assignment, const absl::Status& why);

// `job` is the assignment as the trainer gets it; its output_dir receives the attempt's part of the
// trainer's output as trainer.log.
AttemptEnd RunAttempt(const AttemptServices& services, const AttemptOptions& options,
                      const LeaseRef& lease, const TrainerJob& job);

}  // namespace hpo::agent
