// SIGINT and SIGTERM as values, for the one thread that waits for them.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace hpo::server {

// Blocks both signals in the calling thread and all it starts later: create it first in main.
// Also ignores SIGPIPE, so that a reader of the banner may go.
class TerminationSignal {
 public:
  TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;

  // The signal that arrived within `timeout`, or nullopt.
  std::optional<int> WaitFor(absl::Duration timeout) const;

  // From now on a signal ends the process at once with 128 + its number (130, 143).
  void ExitOnNext() const;
};

}  // namespace hpo::server
