// The command that a study names, for workers that allow it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

struct StudyCommand {
  std::string study;
  std::string command;  // for /bin/sh, with its placeholders
  std::string workdir;  // it runs there; empty: in the worker's folder
  int64_t gpus = 1;     // that each trial takes
  bool operator==(const StudyCommand&) const = default;
};

struct CommandSearch {
  std::vector<std::string> served;  // names of studies; empty: all
  std::string server;               // for messages
  absl::Duration connect_timeout;   // how long the server may be away
  bool stay = false;                // wait for new studies when all have ended
  std::optional<absl::Duration> max_idle = std::nullopt;  // the longest wait; nullopt: any
};

// Exactly one of the two, or neither: the studies that are served and run name no command.
struct FoundCommand {
  std::optional<StudyCommand> command;
  std::vector<FinishedStudy> ended;  // all that are served
  bool operator==(const FoundCommand&) const = default;
};

// The command of the one served study that still runs and names one. Waits for the server, and
// until a served study runs or all have ended; the log says for what.
//   Cancelled         `stop` was raised meanwhile
//   DeadlineExceeded  no study runs within `max_idle`
//   Unavailable       the server is away for longer than `connect_timeout` or `max_idle`
//   InvalidArgument   several studies name one; lists them
//   others            those that end a worker (rpc_reaction.h)
absl::StatusOr<FoundCommand> FindStudyCommand(CoordinatorClient& client,
                                              const CommandSearch& search, Backoff pauses,
                                              StopSignal& stop);

// The number of GPUs that each trial of the served studies takes, where they agree; 1 where they do
// not, or none runs. Waits as FindStudyCommand.
//   Cancelled, DeadlineExceeded, Unavailable, others  as FindStudyCommand
absl::StatusOr<int64_t> FindGpusPerTrial(CoordinatorClient& client, const CommandSearch& search,
                                         Backoff pauses, StopSignal& stop);

}  // namespace hpo::agent
