// Forward-only schema changes, compiled in from NNN_name.sql. The database's version is SQLite's
// user_version; application_id marks the file as ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// What brings a database from version - 1 to `version`.
struct Migration {
  int64_t version;
  absl::string_view name;
  absl::string_view sql;
};

// Versions 1, 2, ... without a gap.
std::span<const Migration> EmbeddedMigrations();

// The database's version: 0 where it is empty. `name`: what errors call it.
//   FailedPrecondition  the database is of a newer version, or another program's
absl::StatusOr<int64_t> CheckVersion(Database& database, std::span<const Migration> migrations,
                                     const std::string& name);

// Brings `database` to the last version, each step in its own transaction. A database that holds
// data is copied to "<file>.v<version>.bak" first.
// Codes: as CheckVersion.
absl::Status Migrate(Database& database, std::span<const Migration> migrations);

}  // namespace hpo::server
