// The only source of time. Production code takes a Clock; tests move a SimulatedClock
// (tests/fakes/simulated_clock.h) by hand.
#pragma once

#include "absl/time/time.h"

namespace hpo {

class Clock {
 public:
  virtual ~Clock() = default;

  // Wall-clock time to the microsecond, as it is stored; also for display. May jump.
  virtual absl::Time Now() const = 0;

  // Time since some fixed point; never goes back. Leases and time-outs are measured with it.
  virtual absl::Duration Monotonic() const = 0;
};

// The machine's clocks. Safe to share between threads.
class SystemClock final : public Clock {
 public:
  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
};

}  // namespace hpo
