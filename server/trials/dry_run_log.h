// What the dry runs of a study found, and which workers cannot dry-run it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/storage/records.h"

namespace hpo::server {

// Thread-safe.
class DryRunLog {
 public:
  // The rows of one dry run, which are stored.
  void Add(std::vector<DryRunRecord> rows) {
    absl::MutexLock lock(&mutex_);
    for (DryRunRecord& row : rows) rows_.push_back(std::move(row));
  }
  // By number and position.
  std::vector<DryRunRecord> All() const {
    absl::MutexLock lock(&mutex_);
    return rows_;
  }

  // Whether the worker's latest dry run failed. Not stored: a restart and an edited study give
  // every worker new attempts.
  void Ended(const std::string& worker, bool failed) {
    absl::MutexLock lock(&mutex_);
    failed_in_a_row_[worker] = failed ? failed_in_a_row_[worker] + 1 : 0;
  }
  // Whether too many of the worker's dry runs have failed in a row: it makes no more.
  bool HasGivenUp(const std::string& worker) const {
    absl::MutexLock lock(&mutex_);
    const auto found = failed_in_a_row_.find(worker);
    return found != failed_in_a_row_.end() && found->second >= kMostFailedInARow;
  }
  void ForgetFailures() {
    absl::MutexLock lock(&mutex_);
    failed_in_a_row_.clear();
  }

  static constexpr int kMostFailedInARow = 3;

 private:
  mutable absl::Mutex mutex_;
  std::vector<DryRunRecord> rows_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> failed_in_a_row_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
