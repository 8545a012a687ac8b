// SIGINT and SIGTERM as events that a loop can wait for. One for the process.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace hpo::cli {

// From here on these signals are counted, and do not end the process.
//   Unavailable  no descriptor can be had
absl::Status CountInterrupts();

// Readable where there are interrupts that InterruptsSeen has not returned. -1 before
// CountInterrupts.
int InterruptEvents();

// Number of interrupts since the last call.
uint64_t InterruptsSeen();

}  // namespace hpo::cli
