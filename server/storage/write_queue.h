// One thread that writes, with group commit: writes that arrive while a commit is under way share
// the next one.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/storage/database.h"

namespace hpo {

// Thread-safe. The destructor finishes what is queued.
class WriteQueue {
 public:
  // Runs on the writer thread inside a savepoint of its own: a failure undoes this write alone.
  // It sees what earlier writes of the batch did. Must not call Write.
  using Work = std::function<absl::Status(Database&)>;
  // Runs on the writer thread after the commit, in the order of the writes.
  using AfterCommit = std::function<void()>;

  struct Stats {
    int64_t commits = 0;
    int64_t writes = 0;
  };

  explicit WriteQueue(std::unique_ptr<Database> database);
  ~WriteQueue();

  // Blocks until `work` is durable (COMMIT with synchronous=FULL) and `after_commit` has run.
  // Returns the status of `work`, or of the commit that all of its batch share.
  absl::Status Write(Work work, AfterCommit after_commit = nullptr);

  Stats stats() const;

 private:
  struct Entry {
    Work work;
    AfterCommit after_commit;
    absl::Status status;
    absl::Notification done;
  };

  void RunLoop();
  void RunBatch(const std::vector<Entry*>& batch);
  absl::Status CommitBatch(const std::vector<Entry*>& batch);
  absl::Status RunInSavepoint(Entry& entry);

  const std::unique_ptr<Database> database_;  // the writer thread's
  mutable absl::Mutex mutex_;
  std::deque<Entry*> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread writer_;
};

}  // namespace hpo
