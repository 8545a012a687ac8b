#include "server/storage/sqlite/copy_database.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/migrations.h"

namespace hpo::server {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "SQLite format 3";  // with its zero; https://sqlite.org/fileformat.html

// What tells that a file was written meanwhile.
struct FileState {
  uintmax_t size = 0;
  fs::file_time_type written;
  bool operator==(const FileState&) const = default;
};

absl::StatusOr<FileState> StateOf(const std::string& path) {
  std::error_code error;
  FileState state{.size = fs::file_size(path, error)};
  if (error) return FileError(error.value(), path);
  state.written = fs::last_write_time(path, error);
  if (error) return FileError(error.value(), path);
  return state;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

absl::Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return FileError(error.value(), from);
  // Also of a file that its owner may not write.
  fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
  return error ? FileError(error.value(), to) : absl::OkStatus();
}

absl::Status CheckMagic(const std::string& database) {
  std::string begin;
  const absl::Status read =
      ReadFileInPieces(database, sizeof kMagic, [&begin](absl::string_view piece) {
        begin = std::string(piece);
        return absl::CancelledError();
      });
  if (!read.ok() && !absl::IsCancelled(read)) return read;
  if (begin == absl::string_view(kMagic, sizeof kMagic)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(database, ": expected a database of hpo-server, got ",
                   begin.empty() ? "an empty file" : "a file of another kind"));
}

// Through SQLite, which keeps what a server writes meanwhile out of the copy.
absl::Status CopyInUse(const std::string& database, const std::string& copy) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<Database> source,
                       Database::Open(database, Database::Access::kReadOnly));
  return source->Prepare("VACUUM INTO ?1").Bind(copy).Run();
}

// The file and its log, if there is one. Where no server is, SQLite would create files beside them.
absl::Status CopyAtRest(const std::string& database, const std::string& copy) {
  const std::string log = database + "-wal";
  HPO_ASSIGN_OR_RETURN(const FileState before, StateOf(database));
  HPO_RETURN_IF_ERROR(CopyFile(database, copy));
  if (Exists(log)) HPO_RETURN_IF_ERROR(CopyFile(log, copy + "-wal"));
  HPO_ASSIGN_OR_RETURN(const FileState after, StateOf(database));
  if (before == after && !Exists(database + "-shm")) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("a server has started or ended on database ", database, "; try again"));
}

}  // namespace

absl::StatusOr<CopiedDatabase> CopyDatabase(const std::string& database, const std::string& copy) {
  HPO_RETURN_IF_ERROR(CheckMagic(database));
  // This file is there while a server runs, and after one that was killed.
  HPO_RETURN_IF_ERROR(Exists(database + "-shm") ? CopyInUse(database, copy)
                                                : CopyAtRest(database, copy));
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<Database> copied,
                       Database::Open(copy, Database::Access::kReadOnly));
  CopiedDatabase result;
  HPO_ASSIGN_OR_RETURN(result.version, CheckVersion(*copied, EmbeddedMigrations(), database));
  return result;
}

}  // namespace hpo::server
