// Forward-only schema changes, compiled in from NNN_name.sql. The database's version is SQLite's
// user_version; application_id marks the file as ours.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/storage/database.h"

namespace hpo {

// What brings a database from version - 1 to `version`.
struct Migration {
  int64_t version;
  absl::string_view name;
  absl::string_view sql;
};

// Versions 1, 2, ... without a gap.
std::span<const Migration> EmbeddedMigrations();

//   FailedPrecondition  the database is of a newer version, or another program's
absl::Status CheckVersion(Database& database, std::span<const Migration> migrations);

// Brings `database` to the last version, each step in its own transaction. A database that holds
// data is copied to "<file>.v<version>.bak" first.
// Codes: as CheckVersion.
absl::Status Migrate(Database& database, std::span<const Migration> migrations);

}  // namespace hpo
