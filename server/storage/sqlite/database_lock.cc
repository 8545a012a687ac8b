#include "server/storage/sqlite/database_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"

namespace hpo::server {
namespace {

std::string ReadHolder(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  if (size <= 0) return "unknown";
  return std::string(absl::StripAsciiWhitespace(absl::string_view(text.data(), size)));
}

// Not worth a refusal: the lock is on the database.
void WriteHolder(int descriptor) {
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(descriptor, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(descriptor, pid.data(), pid.size(), 0);
}

absl::Status OpenError(const std::string& path, int error) {
  const std::string message =
      absl::StrCat("expected to open or create ", path, ", got: ", std::strerror(error));
  return MayPass(error) ? absl::UnavailableError(message) : absl::FailedPreconditionError(message);
}

absl::Status InUse(const std::string& path, int holder) {
  return absl::FailedPreconditionError(absl::StrCat("database ", path, " is in use by pid ",
                                                    holder < 0 ? "unknown" : ReadHolder(holder)));
}

}  // namespace

absl::StatusOr<DatabaseLock> DatabaseLock::Acquire(const std::string& database_path) {
  DatabaseLock lock(database_path);
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(database_path, error);
  const std::string holder = absl::StrCat(error ? database_path : real.string(), ".lock");
  lock.holder_ = open(holder.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // First, as earlier servers lock this alone, and as a second one in this process is then refused
  // before it opens the database: to close that would end the locks of SQLite.
  if (lock.holder_ >= 0 && flock(lock.holder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return InUse(database_path, lock.holder_);
  }
  lock.file_ = open(database_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock.file_ < 0) return OpenError(database_path, errno);
  if (flock(lock.file_, LOCK_EX | LOCK_NB) != 0) return InUse(database_path, lock.holder_);
  struct stat file = {};
  if (fstat(lock.file_, &file) != 0) return OpenError(database_path, errno);
  lock.device_ = file.st_dev;
  lock.inode_ = file.st_ino;
  if (absl::Status replaced = lock.Check(); !replaced.ok()) return replaced;
  if (lock.holder_ >= 0) WriteHolder(lock.holder_);
  return lock;
}

absl::Status DatabaseLock::Check() const {
  struct stat file = {};
  const bool there = stat(path_.c_str(), &file) == 0;
  if (there && file.st_dev == device_ && file.st_ino == inode_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("database ", path_, " was ", there ? "replaced" : "removed",
                   " while the server used it; put it back, or start the server again"));
}

DatabaseLock::DatabaseLock(DatabaseLock&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      holder_(std::exchange(other.holder_, -1)),
      device_(other.device_),
      inode_(other.inode_) {}

DatabaseLock::~DatabaseLock() {
  if (file_ >= 0) close(file_);
  if (holder_ >= 0) close(holder_);
}

}  // namespace hpo::server
