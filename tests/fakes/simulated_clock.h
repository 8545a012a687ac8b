// A clock that only the test moves. Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"

namespace hpo {

class SimulatedClock final : public Clock {
 public:
  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return start_ + elapsed_ + jump_;
  }

  absl::Duration Monotonic() const override {
    absl::MutexLock lock(&mutex_);
    return elapsed_;
  }

  void Advance(absl::Duration step) {
    absl::MutexLock lock(&mutex_);
    elapsed_ += step;
  }

  // Moves the wall clock alone, as an administrator or NTP would.
  void JumpWallClock(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    jump_ += by;
  }

 private:
  mutable absl::Mutex mutex_;
  const absl::Time start_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration elapsed_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  absl::Duration jump_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace hpo
