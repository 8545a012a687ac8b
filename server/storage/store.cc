#include "server/storage/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/storage/migrations.h"

namespace hpo {

namespace {

// A database is its owner's alone, also one that an earlier version made for all to read. SQLite
// gives its other files the same mode. Before the file is opened: closing a descriptor of it would
// take SQLite's locks away.
absl::Status MakePrivate(const std::string& path) {
  const int made = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) close(made);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    if (chmod((path + suffix).c_str(), 0600) == 0 || errno == ENOENT) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("database ", path, suffix,
                     ": expected to make it ours alone, got: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path) {
  HPO_ASSIGN_OR_RETURN(DatabaseLock lock, DatabaseLock::Acquire(path));
  HPO_RETURN_IF_ERROR(MakePrivate(path));
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Database> writer,
                       Database::Open(path, Database::Access::kReadWrite));
  HPO_RETURN_IF_ERROR(Migrate(*writer, EmbeddedMigrations()));
  return std::unique_ptr<Store>(new Store(path, std::move(lock), std::move(writer)));
}

Store::Store(std::string path, DatabaseLock lock, std::unique_ptr<Database> writer)
    : path_(std::move(path)),
      lock_(std::move(lock)),
      writer_(std::make_unique<WriteQueue>(std::move(writer))) {}

absl::StatusOr<std::unique_ptr<Database>> Store::TakeReader() const {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<Database> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  return Database::Open(path_, Database::Access::kReadOnly);
}

absl::Status Store::Read(const std::function<absl::Status(Database&)>& work) const {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Database> reader, TakeReader());
  HPO_RETURN_IF_ERROR(reader->Prepare("BEGIN").Run());
  const absl::Status status = work(*reader);
  const absl::Status ended = reader->Prepare("ROLLBACK").Run();
  if (ended.ok()) {
    absl::MutexLock lock(&mutex_);
    idle_readers_.push_back(std::move(reader));
  }
  return status;
}

}  // namespace hpo
