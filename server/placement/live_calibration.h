// The server's calibration as its last committed residual left it, for all studies.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "memory/need/calibration.h"

namespace hpo::server {

struct CalibrationSnapshot {
  memory::MarginTable margins;
  int64_t version = 0;  // of the last residual in it; 0: none
};

// Thread-safe.
class LiveCalibration {
 public:
  // In the order of versions, after the commit.
  void Publish(int64_t version, const memory::Residual& residual) {
    absl::MutexLock lock(&mutex_);
    current_.margins.Observe(residual);
    current_.version = version;
  }

  void Replace(CalibrationSnapshot rebuilt) {
    absl::MutexLock lock(&mutex_);
    current_ = std::move(rebuilt);
  }

  CalibrationSnapshot Snapshot() const {
    absl::MutexLock lock(&mutex_);
    return current_;
  }

 private:
  mutable absl::Mutex mutex_;
  CalibrationSnapshot current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
