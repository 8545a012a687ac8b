// `hpo admin`: copies of a server's database.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace hpo::cli {

// Writes a copy of the running server's database to `file`.
absl::Status BackUpDatabase(Session& session, const std::string& file);

// Becomes `hpo-server --restore`, which alone knows databases: the program beside this one, else
// that in PATH. Returns only where there is none.
absl::StatusOr<int> RunRestore(const std::string& backup, const std::string& database);

}  // namespace hpo::cli
