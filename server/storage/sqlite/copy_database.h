// A database as it is now, in another file, for those who only read it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hpo::server {

struct CopiedDatabase {
  int64_t version = 0;  // of its schema
};

// Copies `database` to `copy`, which does not exist yet. A server may use `database` meanwhile. No
// byte of it or of its write-ahead log changes, and no file appears beside it.
//   FailedPrecondition  `database` is of a newer version or another program's
//   DataLoss            it is damaged
//   Unavailable         a server started or ended meanwhile; try again
//   NotFound, PermissionDenied, ResourceExhausted  see FileError (read_file.h)
absl::StatusOr<CopiedDatabase> CopyDatabase(const std::string& database, const std::string& copy);

}  // namespace hpo::server
