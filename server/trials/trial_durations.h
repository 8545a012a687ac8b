// How long a study's trials take. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/study/trial.h"

namespace hpo::server {

class TrialDurations {
 public:
  // As many as speak for those to come: ranges may be edited.
  static constexpr size_t kMost = 20;

  // A trial that has changed, `attempts` being how many it has had. Counts where it has completed
  // in its first attempt: of others it is not known how long one takes.
  void Publish(const Trial& trial, AttemptNumber attempts) {
    const bool counts = trial.state == TrialState::kCompleted && attempts.value == 1 &&
                        trial.started != absl::InfinitePast() && trial.ended > trial.started;
    if (!counts) return;
    absl::MutexLock lock(&mutex_);
    last_[trial.id.number] = trial.ended - trial.started;
    if (last_.size() > kMost) last_.erase(last_.begin());
  }

  // The longest of the last ones; zero: there is none.
  absl::Duration Longest() const {
    absl::MutexLock lock(&mutex_);
    absl::Duration longest;
    for (const auto& [number, took] : last_) longest = std::max(longest, took);
    return longest;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<TrialNumber, absl::Duration> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
