// The command that a study names, for workers that allow it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/session/backoff.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo {

struct StudyCommand {
  std::string study;
  std::string command;  // for /bin/sh, with its placeholders
  bool operator==(const StudyCommand&) const = default;
};

// That of the one study in `served` (empty: of all that still run) which names one; nullopt where
// none does. Waits for the server, and for the studies that are to be served.
//   Cancelled        `stop` was raised meanwhile
//   Unavailable      the server is away
//   InvalidArgument  several studies name one; lists them
absl::StatusOr<std::optional<StudyCommand>> FindStudyCommand(CoordinatorClient& client,
                                                             const std::vector<std::string>& served,
                                                             absl::Duration timeout, Backoff pauses,
                                                             StopSignal& stop);

}  // namespace hpo
