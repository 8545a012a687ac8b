// One thread that writes, with group commit: writes that arrive while a commit is under way share
// the next one.
//
// A batch is stored whole or not at all: where SQLite has rolled its transaction back (a full disk,
// an input/output error), all of its writes fail, and none of them ever runs outside a transaction.
// Each batch counts itself in the row of `server`, so that the next one sees what became of it, and
// whether another server has written since.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// Thread-safe. The destructor finishes what is queued.
class WriteQueue {
 public:
  // Runs on the writer thread inside a savepoint of its own: a failure undoes this write alone.
  // It sees what earlier writes of the batch did. Must not call Write.
  using Work = std::function<absl::Status(Database&)>;
  // Runs on the writer thread after the commit, in the order of the writes.
  using AfterCommit = std::function<void()>;
  // Asked before each batch whether the database may still be written.
  using Guard = std::function<absl::Status()>;

  struct Stats {
    int64_t commits = 0;
    int64_t writes = 0;
    int64_t waiting = 0;  // now
  };

  explicit WriteQueue(std::unique_ptr<Database> database, Guard guard = nullptr);
  ~WriteQueue();

  // Blocks until `work` is durable (COMMIT with synchronous=FULL) and `after_commit` has run.
  // Returns the status of `work`, or
  //   Unavailable  nothing of the batch was stored: the disk is full or broken, `guard` refused,
  //                another server writes to the database, or this one is behind()
  absl::Status Write(Work work, AfterCommit after_commit = nullptr);

  // A batch that was told to have failed is in the database after all. Writes are refused, as their
  // callers' memory lacks it, until CatchUp.
  bool behind() const;
  // Runs `read`, which makes memory equal to the rows; when it returns OK, writes are taken again.
  absl::Status CatchUp(Work read);

  // What became of the last batch; OK before the first.
  absl::Status last_commit() const;
  Stats stats() const;

 private:
  struct Entry {
    Work work;
    AfterCommit after_commit;
    bool catches_up = false;
    absl::Status status;
    absl::Notification done;
  };
  // Who wrote the last batch, and which it was.
  struct Stamp {
    int64_t epoch = 0;
    int64_t batch = 0;
    bool operator==(const Stamp&) const = default;
  };

  absl::Status Enqueue(Entry& entry);
  void RunLoop();
  void RunBatch(const std::vector<Entry*>& batch);
  absl::Status CommitBatch(const std::vector<Entry*>& batch);
  // Whether the rows are those that memory knows; sets behind() where they are not.
  absl::StatusOr<bool> IsCaughtUp();
  absl::Status RunInSavepoint(Entry& entry);
  absl::StatusOr<Stamp> ReadStamp();

  // The writer thread's.
  const std::unique_ptr<Database> database_;
  const Guard guard_;
  std::optional<Stamp> stamp_;  // of the last batch that is known to be stored

  mutable absl::Mutex mutex_;
  std::deque<Entry*> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool behind_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_commit_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread writer_;
};

}  // namespace hpo::server
