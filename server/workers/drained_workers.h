// Names of workers that get no more trials (FleetService.DrainWorkers), as the database has them.
// Thread-safe.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace hpo::server {

class DrainedWorkers {
 public:
  bool Contains(const std::string& name) const {
    absl::MutexLock lock(&mutex_);
    return names_.contains(name);
  }
  std::set<std::string> All() const {
    absl::MutexLock lock(&mutex_);
    return names_;
  }

  // After a commit.
  void Replace(std::set<std::string> names) {
    absl::MutexLock lock(&mutex_);
    names_ = std::move(names);
  }
  void Add(const std::vector<std::string>& names) {
    absl::MutexLock lock(&mutex_);
    names_.insert(names.begin(), names.end());
  }
  void Remove(const std::vector<std::string>& names) {
    absl::MutexLock lock(&mutex_);
    for (const std::string& name : names) names_.erase(name);
  }

 private:
  mutable absl::Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
