#include "server/storage/sqlite/migrations.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

constexpr int64_t kApplicationId = 0x68706f31;  // "hpo1"

absl::StatusOr<int64_t> ReadPragma(Database& database, absl::string_view name) {
  Statement pragma = database.Prepare(absl::StrCat("PRAGMA ", name));
  HPO_ASSIGN_OR_RETURN(const bool row, pragma.Next());
  return row ? pragma.Int(0) : 0;
}

absl::Status CheckOwner(Database& database, int64_t version, const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const int64_t application, ReadPragma(database, "application_id"));
  if (application == kApplicationId) return absl::OkStatus();
  Statement tables = database.Prepare("SELECT COUNT(*) FROM sqlite_master");
  HPO_RETURN_IF_ERROR(tables.Next().status());
  if (version == 0 && tables.Int(0) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("database ", name,
                   ": expected a database of hpo-server, got another program's; give --db a "
                   "different file"));
}

// Through a temporary name, so that a copy under the final name is always whole.
absl::Status BackUp(Database& database, int64_t version) {
  const std::string target = absl::StrCat(database.path(), ".v", version, ".bak");
  const std::string partial = absl::StrCat(target, ".partial");
  std::remove(partial.c_str());
  HPO_RETURN_IF_ERROR(database.Prepare("VACUUM INTO ?1").Bind(partial).Run());
  if (std::rename(partial.c_str(), target.c_str()) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write the backup ", target));
  }
  return absl::OkStatus();
}

absl::Status Apply(Database& database, const Migration& migration) {
  HPO_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  HPO_RETURN_IF_ERROR(
      database.Execute(absl::StrCat(migration.sql, ";PRAGMA user_version=", migration.version,
                                    ";PRAGMA application_id=", kApplicationId)));
  return transaction.Commit();
}

}  // namespace

absl::StatusOr<int64_t> CheckVersion(Database& database, std::span<const Migration> migrations,
                                     const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const int64_t version, ReadPragma(database, "user_version"));
  const int64_t ours = migrations.empty() ? 0 : migrations.back().version;
  if (version > ours) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", name, " has version ", version, ", this hpo-server knows up to ",
                     ours, "; run a newer hpo-server or give --db a different file"));
  }
  HPO_RETURN_IF_ERROR(CheckOwner(database, version, name));
  return version;
}

absl::Status Migrate(Database& database, std::span<const Migration> migrations) {
  HPO_ASSIGN_OR_RETURN(const int64_t version, CheckVersion(database, migrations, database.path()));
  const int64_t ours = migrations.empty() ? 0 : migrations.back().version;
  if (version > 0 && version < ours) HPO_RETURN_IF_ERROR(BackUp(database, version));
  for (const Migration& migration : migrations) {
    if (migration.version <= version) continue;
    HPO_RETURN_IF_ERROR(
        Annotate(Apply(database, migration),
                 absl::StrCat("migration ", migration.version, " ", migration.name)));
  }
  return absl::OkStatus();
}

}  // namespace hpo::server
