// Waits for what this machine lacks at the moment: space, descriptors, processes, memory.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/process/stop_signal.h"

namespace hpo::agent {

// Whether an error of this machine's files and processes may pass by itself: Unavailable or
// ResourceExhausted. For an errno value see MayPass in read_file.h.
bool MayPass(const absl::Status& error);

// Calls `act` until what it returns is not Unavailable, as long as it takes; returns that. The log
// says at first and once a minute what is waited for.
//   Cancelled  `stop` was raised meanwhile
absl::Status WaitForMachine(StopSignal& stop, Backoff pauses,
                            const std::function<absl::Status()>& act);

}  // namespace hpo::agent
