// `hpo admin`: copies of a server's database, and its tokens.
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

absl::Status ListTokens(Session& session);

struct TokenOptions {
  std::string name;
  std::string role;
  std::string lifetime;      // empty: no expiry, or as before
  std::string grace = "1h";  // of a rotation
};

// Both show the new join string, once.
absl::Status CreateToken(Session& session, const TokenOptions& options);
absl::Status RotateToken(Session& session, const TokenOptions& options);
absl::Status RevokeToken(Session& session, const std::string& name);

}  // namespace hpo::cli
