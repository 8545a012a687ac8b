// The table of a study's trials, which follows the database: each use first reads the trials that
// changed since the one before. The first use reads all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/storage/store.h"
#include "server/studies/study_runtime.h"
#include "server/table/trial_columns.h"

namespace hpo::server {

// Thread-safe.
class TrialTable {
 public:
  // Calls `use` with the columns as they are at the study's change `sequence`, which is as new as
  // what was committed before the call. Uses of one study wait for each other.
  //   Unavailable  the database cannot be read for now
  absl::Status Use(const Store& store, const StudyRuntime& study,
                   const std::function<absl::Status(const TrialColumns&, int64_t sequence)>& use);

 private:
  absl::Status Refresh(const Store& store, const StudyRuntime& study)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  TrialColumns columns_ ABSL_GUARDED_BY(mutex_);
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = -1;  // -1: nothing was read
};

// The tables of all studies that somebody has asked for. Thread-safe.
class TrialTables {
 public:
  std::shared_ptr<TrialTable> Of(const StudyRuntime::Identity& study);
  // Forgets those of studies that are gone.
  void Keep(const std::function<bool(const StudyRuntime::Identity&)>& is_there);

 private:
  absl::Mutex mutex_;
  std::map<StudyRuntime::Identity, std::shared_ptr<TrialTable>> tables_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
