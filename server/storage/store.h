// The server's database: one writer, a few readers, one server per file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/database_lock.h"
#include "server/storage/write_queue.h"

namespace hpo::server {

// Thread-safe. Codes of all calls: see database.h.
class Store {
 public:
  // Opens or creates the database at `path`, takes its lock and migrates it. All connections are
  // opened now: later calls need no descriptor. Where the last server did not end in order, the
  // file is looked over (damage()).
  //   FailedPrecondition  in use by another server, of a newer version, or another program's
  //   Unavailable         the disk is full or broken; may work later
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path);
  ~Store();

  // See WriteQueue::Write: durable when it returns OK.
  absl::Status Write(WriteQueue::Work work, WriteQueue::AfterCommit after_commit = nullptr) {
    return writer_->Write(std::move(work), std::move(after_commit));
  }

  // See WriteQueue: a batch that was told to have failed is in the database; until CatchUp has made
  // memory equal to the rows, writes are refused.
  bool behind() const { return writer_->behind(); }
  absl::Status CatchUp(WriteQueue::Work read) { return writer_->CatchUp(std::move(read)); }

  // Runs `work` on a connection of its own, in one read transaction: it sees one committed state.
  // Waits where all readers are busy. Must not be called by `work`.
  absl::Status Read(const std::function<absl::Status(Database&)>& work) const;

  // Runs `use` on the path of a copy of the database as it is now, which is gone afterwards. The
  // copy lies beside the database. One at a time; others wait.
  absl::Status WithCopy(const std::function<absl::Status(const std::string&)>& use) const;

  // What keeps the last commit or the last read from working, in words; empty: nothing.
  std::string trouble() const;
  // Writes and reads a little, so that trouble() tells how it is now.
  void Probe();
  // What was found wrong with the file when it was opened (FindDamage).
  const std::vector<std::string>& damage() const { return damage_; }

  WriteQueue::Stats write_stats() const { return writer_->stats(); }
  const std::string& path() const { return path_; }

 private:
  Store(std::string path, DatabaseLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  absl::Status Begin(Database& writer);
  absl::Status OpenReaders();
  absl::Status ReadOn(Database& reader, const std::function<absl::Status(Database&)>& work) const;
  absl::StatusOr<std::unique_ptr<Database>> TakeReader() const;
  // `status`: what the reader was last good for.
  void GiveBack(std::unique_ptr<Database> reader, const absl::Status& status) const;

  const std::string path_;
  // Before the connections: they close first, as closing any descriptor of a file gives up the
  // process's POSIX locks on it.
  DatabaseLock lock_;
  std::vector<std::string> damage_;
  std::unique_ptr<WriteQueue> writer_;
  mutable absl::Mutex copy_mutex_;
  mutable absl::Mutex mutex_;
  // nullptr: a connection that failed; whoever takes it opens it again.
  mutable std::vector<std::unique_ptr<Database>> idle_readers_ ABSL_GUARDED_BY(mutex_);
  mutable absl::Status last_read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
