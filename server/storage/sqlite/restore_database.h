// Puts a backup into the place of a database that no server uses.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hpo::server {

struct RestoredDatabase {
  std::string kept_as;  // where the database that was there is now; empty: there was none
};

// Checks the backup (ours, of a version that this server knows, whole), copies it, and only then
// gives it the place of `database`.
//   FailedPrecondition  `database` is in use by a server; `backup` is of a newer version, another
//                       program's, or `database` itself
//   DataLoss            `backup` is damaged
//   NotFound, PermissionDenied, ResourceExhausted, Unavailable  see FileError (read_file.h)
absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& backup,
                                                 const std::string& database);

}  // namespace hpo::server
