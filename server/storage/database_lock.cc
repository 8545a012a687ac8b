#include "server/storage/database_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

std::string ReadHolder(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  if (size <= 0) return "unknown";
  return std::string(absl::StripAsciiWhitespace(absl::string_view(text.data(), size)));
}

absl::Status WriteHolder(int descriptor) {
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return absl::FailedPreconditionError(absl::StrCat("lock file: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatabaseLock> DatabaseLock::Acquire(const std::string& database_path) {
  const std::string path = absl::StrCat(database_path, ".lock");
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected to create ", path, ", got: ", std::strerror(errno)));
  }
  DatabaseLock lock(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database_path, " is in use by pid ", ReadHolder(descriptor)));
  }
  if (absl::Status written = WriteHolder(descriptor); !written.ok()) return written;
  return lock;
}

DatabaseLock::DatabaseLock(DatabaseLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

DatabaseLock::~DatabaseLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace hpo
