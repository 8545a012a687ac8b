// One dry run at a time of all workers that share a lock file, so that they take no more processors
// than one may.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/agent/preflight/stop_wait.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {

// Waits until no other process has the file locked; the lock is that of the descriptor. Where the
// file cannot be opened or locked there is no turn to wait for, and the descriptor is none.
//   Cancelled  `stop` said so
absl::StatusOr<UniqueFd> TakeTurn(const std::string& path, const StopWait& stop);

}  // namespace hpo::agent
