// At most one server per database file.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hpo {

// An exclusive lock (flock) on "<path>.lock", which also names the holder's process id. Held until
// destroyed or until the process ends, however it ends. Movable.
class DatabaseLock {
 public:
  //   FailedPrecondition  another process holds it ("database X is in use by pid N"), or the lock
  //                       file cannot be created
  static absl::StatusOr<DatabaseLock> Acquire(const std::string& database_path);

  DatabaseLock(DatabaseLock&& other) noexcept;
  DatabaseLock& operator=(DatabaseLock&&) = delete;
  ~DatabaseLock();

 private:
  explicit DatabaseLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace hpo
