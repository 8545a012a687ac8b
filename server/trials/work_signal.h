// News for workers that wait for a trial, and whether there will be any.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hpo::server {

// Thread-safe.
class WorkSignal {
 public:
  // Something has changed that may give a waiting worker something to do.
  void Raise();
  // Grows with each Raise.
  int64_t generation() const;
  // Blocks until the generation is another one than `seen` or `timeout` is over; whether it is.
  bool AwaitAfter(int64_t seen, absl::Duration timeout) const;

  // Nothing more is handed out from now on. Wakes whoever waits.
  void Drain();
  bool draining() const;

 private:
  mutable absl::Mutex mutex_;
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hpo::server
