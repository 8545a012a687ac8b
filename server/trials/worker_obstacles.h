// Why workers that asked a study got nothing of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace hpo::server {

struct WorkerObstacle {
  std::string text;  // empty: nothing that could be helped
  // Nothing but somebody's intervention changes it, as things were at this generation of
  // WorkSignal; nullopt: time, or a trial that runs, may.
  std::optional<int64_t> blocked_at;
};

// Thread-safe.
class WorkerObstacles {
 public:
  // Why the worker's last ask got nothing; nothing at all after one that got a trial.
  void Set(const std::string& worker, WorkerObstacle obstacle) {
    absl::MutexLock lock(&mutex_);
    obstacles_[worker] = std::move(obstacle);
  }
  void Clear(const std::string& worker) {
    absl::MutexLock lock(&mutex_);
    obstacles_.erase(worker);
  }

  std::string Of(const std::string& worker) const {
    absl::MutexLock lock(&mutex_);
    const auto found = obstacles_.find(worker);
    return found == obstacles_.end() ? "" : found->second.text;
  }

  // Whether the worker has asked since the work signal had `generation`, and is blocked.
  bool IsBlocked(const std::string& worker, int64_t generation) const {
    absl::MutexLock lock(&mutex_);
    const auto found = obstacles_.find(worker);
    return found != obstacles_.end() && found->second.blocked_at == generation;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, WorkerObstacle> obstacles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
