// At most one server per database file.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace hpo::server {

// An exclusive lock (flock) on the database file itself, so that it holds whatever the file is
// called: a symbolic link, a hard link, another spelling. "<path>.lock" names the holder's process
// id for people. Held until destroyed or until the process ends, however it ends. Movable.
class DatabaseLock {
 public:
  // Creates the file where there is none, for its owner alone.
  //   FailedPrecondition  another process holds it ("database X is in use by pid N"), or the file
  //                       cannot be opened
  //   Unavailable         no descriptor, no room on the disk; may work later
  static absl::StatusOr<DatabaseLock> Acquire(const std::string& database_path);

  DatabaseLock(DatabaseLock&& other) noexcept;
  DatabaseLock& operator=(DatabaseLock&&) = delete;
  ~DatabaseLock();

  //   Unavailable  the path no longer names the file that is locked: it was removed or replaced
  absl::Status Check() const;

 private:
  explicit DatabaseLock(std::string path) : path_(std::move(path)) {}

  std::string path_;
  int file_ = -1;
  int holder_ = -1;  // "<path>.lock"; -1: it could not be had
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace hpo::server
