// Tested by tests/server/storage/store_test.cc.
#include "server/storage/sqlite/restore_database.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/database_lock.h"
#include "server/storage/sqlite/integrity.h"
#include "server/storage/sqlite/migrations.h"

namespace hpo::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{1} << 20;
constexpr int kOwnerOnly = 0600;

absl::Status CheckBackup(const std::string& backup) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                       Database::Open(backup, Database::Access::kReadOnly));
  HPO_RETURN_IF_ERROR(CheckVersion(*database, EmbeddedMigrations(), backup).status());
  const std::vector<std::string> damage = FindDamage(*database);
  if (damage.empty()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("backup ", backup, " is damaged: ", absl::StrJoin(damage, "; ")));
}

absl::Status CopyDurably(const std::string& from, const std::string& to) {
  std::ifstream source(from, std::ios::binary);
  if (!source) return FileError(errno, from);
  DurableFile target(to, kOwnerOnly);
  HPO_RETURN_IF_ERROR(target.Create());
  std::vector<char> piece(kPiece);
  while (source.read(piece.data(), static_cast<std::streamsize>(piece.size())),
         source.gcount() > 0) {
    HPO_RETURN_IF_ERROR(target.Write(piece.data(), static_cast<size_t>(source.gcount())));
  }
  if (!source.eof()) return absl::UnavailableError(absl::StrCat("cannot read ", from));
  return target.Commit();
}

absl::Status Rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : FileError(errno, from);
}

std::string FreeName(const std::string& database) {
  const std::string name = absl::StrCat(database, ".before-restore");
  for (int i = 1;; ++i) {
    const std::string candidate = i == 1 ? name : absl::StrCat(name, "-", i);
    std::error_code ignored;
    if (!fs::exists(candidate, ignored)) return candidate;
  }
}

// With its write-ahead log, which would otherwise be taken for that of the restored file.
absl::Status MoveAside(const std::string& database, const std::string& kept) {
  HPO_RETURN_IF_ERROR(Rename(database, kept));
  std::error_code ignored;
  for (const char* part : {"-wal", "-shm"}) {
    const std::string file = absl::StrCat(database, part);
    if (fs::exists(file, ignored)) HPO_RETURN_IF_ERROR(Rename(file, absl::StrCat(kept, part)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& backup,
                                                 const std::string& database) {
  std::error_code error;
  if (fs::equivalent(backup, database, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("restore: expected a backup, got the database ", database, " itself"));
  }
  const auto size = fs::file_size(backup, error);
  if (error) return FileError(error.value(), backup);
  if (size == 0) return absl::DataLossError(absl::StrCat("backup ", backup, " is empty"));
  HPO_RETURN_IF_ERROR(CheckBackup(backup));
  const auto old_size = fs::file_size(database, error);
  const bool there = !error && old_size > 0;
  HPO_ASSIGN_OR_RETURN(const DatabaseLock lock, DatabaseLock::Acquire(database));
  const std::string place = fs::weakly_canonical(database, error).string();
  const std::string copy = absl::StrCat(place, ".restoring");
  HPO_RETURN_IF_ERROR(CopyDurably(backup, copy));
  RestoredDatabase restored;
  if (there) {
    restored.kept_as = FreeName(place);
    HPO_RETURN_IF_ERROR(MoveAside(place, restored.kept_as));
  }
  HPO_RETURN_IF_ERROR(Rename(copy, place));
  const std::string folder = fs::path(place).parent_path().string();
  HPO_RETURN_IF_ERROR(Sync(folder.empty() ? "." : folder));
  return restored;
}

}  // namespace hpo::server
