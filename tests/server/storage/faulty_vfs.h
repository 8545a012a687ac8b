// SQLite's file system with faults: while one of these lives, every connection that opens goes
// through it, and the k-th read, write, sync, open or mapping of the write-ahead log's index fails
// as a full or broken disk does. Nothing of a failed write reaches the file.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

struct sqlite3_vfs;

namespace hpo::server {

enum class FileOperation { kOpen, kRead, kWrite, kSync, kMap };

// For ever, as a disk that stays full.
constexpr int64_t kUntilHealed = std::numeric_limits<int64_t>::max();

struct FileFault {
  FileOperation operation = FileOperation::kWrite;
  int code = 0;       // SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_READ, SQLITE_CANTOPEN, ...
  int64_t first = 1;  // the k-th of these operations from Fail() on
  int64_t count = 1;  // how many fail from there on
  std::string file;   // only files whose path ends so, "-wal"; empty: every file
};

// Thread-safe. One at a time; connections that it has opened are closed before it goes.
class FaultyVfs {
 public:
  FaultyVfs();  // SQLite's default from now on
  FaultyVfs(const FaultyVfs&) = delete;
  ~FaultyVfs();

  // From now on `fault` and no other; counting restarts.
  void Fail(const FileFault& fault);
  // No faults. Counts stay as they are.
  void Heal();

  // Since construction, Fail() or Forget(): how often it was asked for, failed or not.
  int64_t NumDone(FileOperation operation) const;
  int64_t NumFailed() const;
  void Forget();

  // For the file methods: what the operation on `path` is to return; SQLITE_OK: the real thing.
  int Outcome(FileOperation operation, absl::string_view path);
  sqlite3_vfs* real() const { return real_; }

 private:
  sqlite3_vfs* const real_;
  mutable absl::Mutex mutex_;
  FileFault fault_ ABSL_GUARDED_BY(mutex_);
  bool armed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t num_matching_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t num_failed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<FileOperation, int64_t> done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
