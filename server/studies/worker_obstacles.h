// Why workers that asked a study got nothing of it.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace hpo {

// Thread-safe.
class WorkerObstacles {
 public:
  // Why the worker's last ask got nothing, where something could help; empty after one that got a
  // trial.
  void Set(const std::string& worker, const std::string& obstacle) {
    absl::MutexLock lock(&mutex_);
    if (obstacle.empty()) {
      obstacles_.erase(worker);
    } else {
      obstacles_[worker] = obstacle;
    }
  }

  std::string Of(const std::string& worker) const {
    absl::MutexLock lock(&mutex_);
    const auto found = obstacles_.find(worker);
    return found == obstacles_.end() ? "" : found->second;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> obstacles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo
