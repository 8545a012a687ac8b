#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace hpo {

absl::Time SystemClock::Now() const {
  return absl::FromUnixMicros(absl::GetCurrentTimeNanos() / 1000);
}

absl::Duration SystemClock::Monotonic() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace hpo
