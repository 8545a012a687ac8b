// How long to wait, as poll() takes it.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace hpo::agent {

// Milliseconds, rounded up, so that nobody wakes before its time; 0 for what is over, -1 for ever.
// At most an hour, so that no number overflows: callers wait in a loop.
inline int PollTimeout(absl::Duration left) {
  if (left == absl::InfiniteDuration()) return -1;
  const absl::Duration timeout = std::clamp(left, absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))));
}

}  // namespace hpo::agent
