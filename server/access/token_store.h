// Tokens in the database. Verbs over one connection, as in server/storage/trial_store.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/access.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

struct TokenRecord {
  int64_t id = 0;
  std::string name;
  Role role = Role::kRead;
  std::string key_sha256;  // of the public key, lower-case hexadecimal
  absl::Time created;
  absl::Time expires = absl::InfiniteFuture();
  absl::Time revoked = absl::InfiniteFuture();
};

class TokenStore {
 public:
  explicit TokenStore(Database& database) : database_(database) {}

  // `token.id` is chosen and returned.
  absl::StatusOr<int64_t> Insert(const TokenRecord& token);
  // Stores the record's times of expiry and revocation.
  absl::Status UpdateTimes(const TokenRecord& token);
  // In the order of their making.
  //   DataLoss  a row is not what a server writes
  absl::StatusOr<std::vector<TokenRecord>> LoadAll() const;

 private:
  Database& database_;
};

}  // namespace hpo::server
