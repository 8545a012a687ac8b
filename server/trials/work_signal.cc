#include "server/trials/work_signal.h"

#include "common/base/steady_wait.h"

namespace hpo::server {

void WorkSignal::Raise() {
  absl::MutexLock lock(&mutex_);
  ++generation_;
}

int64_t WorkSignal::generation() const {
  absl::MutexLock lock(&mutex_);
  return generation_;
}

bool WorkSignal::AwaitAfter(int64_t seen, absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto changed = [this, seen]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return generation_ != seen; };
  return AwaitSteadily(mutex_, absl::Condition(&changed), timeout);
}

void WorkSignal::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  ++generation_;
}

bool WorkSignal::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

}  // namespace hpo::server
