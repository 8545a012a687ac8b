// The tokens of this server: in memory for each connection, in the database for the next start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/protocol/access.h"
#include "common/tls/join_string.h"
#include "server/access/token_store.h"
#include "server/storage/store.h"

namespace hpo::server {

// What is known of a client's public key.
struct Admission {
  enum class Verdict { kAdmitted, kUnknown, kRevoked, kExpired };
  Verdict verdict = Verdict::kUnknown;
  // Where the key is known:
  int64_t token = 0;
  std::string name;
  Role role = Role::kRead;
  absl::Time expires = absl::InfiniteFuture();
};

// Thread-safe.
class TokenRegistry {
 public:
  // `store` and `clock` outlive it. Reads the tokens of the database.
  static absl::StatusOr<std::unique_ptr<TokenRegistry>> Load(Store& store, const Clock& clock);

  // By the digest of the public key (tls::KeyDigest), compared in constant time.
  Admission Admit(const tls::Digest& key) const;
  // By the token's number, as Caller has it: of who has proved the token before.
  Admission AdmissionOf(int64_t token) const;
  // Whether what was admitted still is: neither revoked nor expired since.
  bool IsValid(int64_t token) const;

  bool empty() const;
  std::vector<TokenInfo> List() const;

  // A new token and its secret, which nobody keeps. `expires` may be InfiniteFuture.
  //   InvalidArgument  not a name: 1 to 64 letters, digits, '-', '_' and '.'
  //   AlreadyExists    a token of that name is in use
  absl::StatusOr<tls::Secret> Create(const std::string& name, Role role, absl::Time expires);
  // A new secret for the token; the ones before stop to work after `grace`. Keeps name, role and
  // time of expiry, unless `expires` is given. `publish` is called while the new secret and the old
  // ones work, so that nobody who reads what it writes is refused; where it fails, they all do
  // further on.
  //   NotFound  no token of that name is in use
  absl::StatusOr<tls::Secret> Rotate(
      const std::string& name, absl::Duration grace, std::optional<absl::Time> expires,
      const std::function<absl::Status(const tls::Secret&)>& publish = nullptr);
  // All secrets of the token stop to work at once.
  //   NotFound            no token of that name is in use
  //   FailedPrecondition  it is the last one of the role admin: nobody could make another one
  absl::Status Revoke(const std::string& name);

 private:
  TokenRegistry(Store& store, const Clock& clock, std::vector<TokenRecord> tokens)
      : store_(store), clock_(clock), tokens_(std::move(tokens)) {}

  absl::StatusOr<tls::Secret> Insert(const std::string& name, Role role, absl::Time expires)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_mutex_);
  absl::Status Update(const std::vector<TokenRecord>& rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(order_mutex_);
  // Whether the token called `name` has this role, and no other token that can be used has it.
  bool IsLastOf(Role role, absl::string_view name) const;
  // The rows of the token that can still be used.
  std::vector<TokenRecord> InUse(absl::string_view name) const;

  Store& store_;
  const Clock& clock_;
  // Held while the database is written, so that one order is made at a time; before mutex_.
  absl::Mutex order_mutex_;
  mutable absl::Mutex mutex_;
  std::vector<TokenRecord> tokens_ ABSL_GUARDED_BY(mutex_);  // in the order of their making
};

}  // namespace hpo::server
