#include "server/storage/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "server/storage/sqlite/integrity.h"
#include "server/storage/sqlite/migrations.h"

namespace hpo::server {
namespace {

// Reads are short; calls that find all of these busy wait for one.
constexpr size_t kNumReaders = 8;
constexpr absl::Duration kLongestWaitForReader = absl::Seconds(20);

std::string CopyOf(const std::string& database) { return absl::StrCat(database, ".copy"); }

// Any read will do.
absl::Status Look(Database& database) {
  return database.Prepare("SELECT epoch FROM server").Next().status();
}

void Remove(const std::string& file) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

// For its owner alone; SQLite fills a file that is there and empty.
absl::Status CreateEmpty(const std::string& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0 && close(descriptor) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot create ", file, ": ", std::strerror(errno)));
}

// A database is its owner's alone, also one that an earlier version made for all to read. SQLite
// gives files that it makes later the same mode.
absl::Status MakePrivate(const std::string& path) {
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
  Remove(CopyOf(path));  // of a server that ended while it made one
  std::unique_ptr<Store> store(new Store(path, std::move(lock)));
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Database> writer,
                       Database::Open(path, Database::Access::kReadWrite));
  HPO_RETURN_IF_ERROR(store->Begin(*writer));
  HPO_RETURN_IF_ERROR(store->OpenReaders());
  store->writer_ = std::make_unique<WriteQueue>(std::move(writer),
                                                [raw = store.get()] { return raw->lock_.Check(); });
  return store;
}

absl::Status Store::Begin(Database& writer) {
  HPO_RETURN_IF_ERROR(Migrate(writer, EmbeddedMigrations()));
  bool in_order = true;
  {
    Statement ended = writer.Prepare("SELECT ended FROM server");
    HPO_RETURN_IF_ERROR(ended.Next().status());
    in_order = ended.Bool(0);
  }
  if (!in_order) damage_ = FindDamage(writer);
  return writer.Prepare("UPDATE server SET ended = 0").Run();
}

absl::Status Store::OpenReaders() {
  for (size_t i = 0; i < kNumReaders; ++i) {
    HPO_ASSIGN_OR_RETURN(std::unique_ptr<Database> reader,
                         Database::Open(path_, Database::Access::kReadOnly));
    // SQLite opens the write-ahead log with the first read.
    HPO_RETURN_IF_ERROR(ReadOn(*reader, Look));
    absl::MutexLock lock(&mutex_);
    idle_readers_.push_back(std::move(reader));
  }
  return absl::OkStatus();
}

Store::~Store() {
  if (writer_ == nullptr) return;
  const auto end = [](Database& database) {
    return database.Prepare("UPDATE server SET ended = 1").Run();
  };
  writer_->Write(end).IgnoreError();  // else the next start looks the file over
}

absl::StatusOr<std::unique_ptr<Database>> Store::TakeReader() const {
  std::unique_ptr<Database> reader;
  {
    absl::MutexLock lock(&mutex_);
    const auto idle = [this]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !idle_readers_.empty(); };
    if (!AwaitSteadily(mutex_, absl::Condition(&idle), kLongestWaitForReader)) {
      return absl::UnavailableError(
          absl::StrCat("database ", path_, ": all ", kNumReaders, " readers are busy; try again"));
    }
    reader = std::move(idle_readers_.back());
    idle_readers_.pop_back();
  }
  if (reader != nullptr) return reader;
  absl::StatusOr<std::unique_ptr<Database>> opened =
      Database::Open(path_, Database::Access::kReadOnly);
  if (!opened.ok()) GiveBack(nullptr, opened.status());
  return opened;
}

void Store::GiveBack(std::unique_ptr<Database> reader, const absl::Status& status) const {
  absl::MutexLock lock(&mutex_);
  last_read_ = absl::IsUnavailable(status) ? status : absl::OkStatus();
  idle_readers_.push_back(std::move(reader));
}

absl::Status Store::ReadOn(Database& reader,
                           const std::function<absl::Status(Database&)>& work) const {
  HPO_RETURN_IF_ERROR(reader.Prepare("BEGIN").Run());
  const absl::Status status = work(reader);
  // A reader that SQLite took out of its transaction is as good as one that ended it.
  if (reader.InTransaction()) HPO_RETURN_IF_ERROR(reader.Prepare("ROLLBACK").Run());
  return status;
}

absl::Status Store::Read(const std::function<absl::Status(Database&)>& work) const {
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Database> reader, TakeReader());
  const absl::Status status = ReadOn(*reader, work);
  if (reader->InTransaction()) reader.reset();
  GiveBack(std::move(reader), status);
  return status;
}

absl::Status Store::WithCopy(const std::function<absl::Status(const std::string&)>& use) const {
  absl::MutexLock lock(&copy_mutex_);
  const std::string copy = CopyOf(path_);
  Remove(copy);
  HPO_RETURN_IF_ERROR(CreateEmpty(copy));
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Database> reader, TakeReader());
  absl::Status status = reader->Prepare("VACUUM INTO ?1").Bind(copy).Run();
  GiveBack(std::move(reader), absl::OkStatus());
  if (status.ok()) status = use(copy);
  Remove(copy);
  return status;
}

std::string Store::trouble() const {
  const absl::Status written = writer_->last_commit();
  if (!written.ok()) return std::string(written.message());
  absl::MutexLock lock(&mutex_);
  return std::string(last_read_.message());
}

void Store::Probe() {
  writer_->Write([](Database&) { return absl::OkStatus(); }).IgnoreError();
  Read(Look).IgnoreError();
}

}  // namespace hpo::server
