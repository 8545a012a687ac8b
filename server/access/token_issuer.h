// Makes tokens and their join strings, and keeps a file with the join string of each token that the
// server has made by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/protocol/access.h"
#include "common/tls/join_string.h"
#include "server/access/token_registry.h"

namespace hpo::server {

struct IssuerOptions {
  std::string folder;       // of the files join-NAME, mode 0600
  tls::Digest certificate;  // that clients pin
  std::string host;         // by which other machines reach the server
  int port = 0;
};

// Thread-safe.
class TokenIssuer {
 public:
  // `tokens` and `clock` outlive it. `changed` is called after a token stopped to work, so that its
  // connections can be closed; not yet the one that has asked for it, which gets its answer.
  TokenIssuer(IssuerOptions options, TokenRegistry& tokens, const Clock& clock,
              std::function<void(uint64_t asking)> changed)
      : options_(std::move(options)),
        tokens_(tokens),
        clock_(clock),
        changed_(std::move(changed)) {}

  // At the first start on a database: a token for each role, named as the role, with its file.
  absl::Status MakeFirstTokens();

  // Writes the files again whose join string names another address or certificate than the server
  // has now. Their secrets stay.
  absl::Status RefreshFiles() const;

  std::vector<TokenInfo> List() const { return tokens_.List(); }
  // Codes: TokenRegistry. `lifetime` nullopt: it does not expire; Rotate: as before. `asking`: the
  // connection of whoever asks (Caller); 0: none.
  absl::StatusOr<NewToken> Create(const std::string& name, Role role,
                                  std::optional<absl::Duration> lifetime);
  absl::StatusOr<NewToken> Rotate(const std::string& name, absl::Duration grace,
                                  std::optional<absl::Duration> lifetime, uint64_t asking = 0);
  absl::Status Revoke(const std::string& name, uint64_t asking = 0);

  // The file with the join string of a token that the server has made.
  std::string FileOf(const std::string& name) const;

 private:
  absl::StatusOr<NewToken> Describe(const std::string& name, const tls::Secret& secret) const;
  tls::JoinString Joining(const tls::Secret& secret) const;
  std::optional<absl::Time> ExpiryAfter(std::optional<absl::Duration> lifetime) const;

  const IssuerOptions options_;
  TokenRegistry& tokens_;
  const Clock& clock_;
  const std::function<void(uint64_t)> changed_;
};

// The command that people paste, of a token with this role.
std::string JoinCommand(Role role, const std::string& join);

// A name or an address by which other machines reach this one, if anybody knows: `host`, unless it
// stands for every address (0.0.0.0, ::); then the machine's name where that is known to lead to an
// address that is not a loopback one; else the first such address.
std::string ReachableHost(const std::string& host);

}  // namespace hpo::server
