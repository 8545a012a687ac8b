// How far a study's changes have come, for those who watch them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/steady_wait.h"

namespace hpo::server {

// Thread-safe.
class ChangeFeed {
 public:
  explicit ChangeFeed(int64_t last) : last_(last) {}

  void Reach(int64_t sequence) {
    absl::MutexLock lock(&mutex_);
    last_ = std::max(last_, sequence);
  }

  // The sequence of the last change.
  int64_t last() const {
    absl::MutexLock lock(&mutex_);
    return last_;
  }

  // Blocks until there is a change after `sequence` or `timeout` is over; whether there is one.
  bool AwaitAfter(int64_t sequence, absl::Duration timeout) const {
    absl::MutexLock lock(&mutex_);
    const auto newer = [this, sequence]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return last_ > sequence; };
    return AwaitSteadily(mutex_, absl::Condition(&newer), timeout);
  }

 private:
  mutable absl::Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
