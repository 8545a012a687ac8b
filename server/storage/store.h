// The server's database: one writer, any number of readers, one server per file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/storage/database.h"
#include "server/storage/database_lock.h"
#include "server/storage/write_queue.h"

namespace hpo {

// Thread-safe. Codes of all calls: see database.h.
class Store {
 public:
  // Opens or creates the database at `path`, takes its lock and migrates it.
  //   FailedPrecondition  in use by another server, of a newer version, or another program's
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path);

  // See WriteQueue::Write: durable when it returns OK.
  absl::Status Write(WriteQueue::Work work, WriteQueue::AfterCommit after_commit = nullptr) {
    return writer_->Write(std::move(work), std::move(after_commit));
  }

  // Runs `work` on a connection of its own, in one read transaction: it sees one committed state.
  absl::Status Read(const std::function<absl::Status(Database&)>& work) const;

  WriteQueue::Stats write_stats() const { return writer_->stats(); }
  const std::string& path() const { return path_; }

 private:
  Store(std::string path, DatabaseLock lock, std::unique_ptr<Database> writer);

  absl::StatusOr<std::unique_ptr<Database>> TakeReader() const;

  const std::string path_;
  DatabaseLock lock_;
  std::unique_ptr<WriteQueue> writer_;
  mutable absl::Mutex mutex_;
  mutable std::vector<std::unique_ptr<Database>> idle_readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo
