// The studies that the server has, and which of them cannot be read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/studies/study_runtime.h"
#include "server/trials/work_signal.h"

namespace hpo::server {

// Owns the runtimes. One whose place another has taken is kept: pointers to it stay valid.
//
// Thread-safe. Changes tell `work`, unless they say otherwise. A `version` is that of the database
// after the change (StudyStore::StudiesVersion).
class StudyRegistry {
 public:
  // `work` outlives the registry.
  explicit StudyRegistry(WorkSignal& work) : work_(work) {}

  // In the order in which they came.
  std::vector<StudyRuntime*> All() const;
  // Of all studies, also of those whose row cannot be read.
  std::vector<std::string> Names() const;
  //   NotFound  no such study, lists those there are; an empty name is the only one
  //   DataLoss  its row cannot be read
  absl::StatusOr<StudyRuntime*> Find(const std::string& name) const;
  int64_t version() const;

  // To be held over a change of any study's spec, its commit and what is called below.
  absl::Mutex& change_mutex() const ABSL_LOCK_RETURNED(change_mutex_) { return change_mutex_; }

  void Add(std::unique_ptr<StudyRuntime> study, int64_t version);
  // A study's spec has changed.
  void Changed(int64_t version);
  // `fresh` takes the place of `study`; without it the study is gone.
  void Replace(StudyRuntime& study, std::unique_ptr<StudyRuntime> fresh, int64_t version);

  struct Loaded {
    std::vector<std::unique_ptr<StudyRuntime>> studies;
    std::map<std::string, std::string> unreadable;  // studies, and why
    int64_t version = 0;
  };
  // Takes the place of all that was there, which is retired. Does not tell `work`: the database may
  // not take writes yet (Store::CatchUp).
  void ReplaceAll(Loaded loaded);

 private:
  WorkSignal& work_;
  mutable absl::Mutex change_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<StudyRuntime>> studies_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StudyRuntime>> retired_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpo::server
