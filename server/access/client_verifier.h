// Decides in the TLS handshake which clients are admitted: those that prove the key of a token, or
// have a certificate of an authority that the operator trusts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/tls/identity.h"
#include "common/tls/openssl_types.h"
#include "server/access/access_control.h"
#include "server/access/token_registry.h"

namespace hpo::server {

// A connection whose client is being verified; the verifier fills it.
struct VerifiedClient {
  std::string from;              // an address; set by the caller
  std::optional<Caller> caller;  // who it is; also of a known token that is refused
  std::string why;               // it is refused
};

// Thread-safe.
class ClientVerifier {
 public:
  // `client_ca_file`: PEM, of authorities whose client certificates are admitted with the role that
  // their organizational unit (OU) names, read where it names none; empty: none. `tokens` outlives
  // the verifier.
  //   InvalidArgument  the file is not PEM
  static absl::StatusOr<std::unique_ptr<ClientVerifier>> Create(const tls::Identity& server,
                                                                const std::string& client_ca_file,
                                                                const TokenRegistry& tokens);

  // A server's end of a handshake (TLS 1.3, HTTP/2). `client` outlives it.
  tls::SslPtr NewHandshake(VerifiedClient& client) const;

 private:
  explicit ClientVerifier(const TokenRegistry& tokens) : tokens_(tokens) {}

  absl::Status MakeContext(const tls::Identity& server, bool has_authorities);
  absl::Status LoadAuthorities(const std::string& file);
  static int Verify(X509_STORE_CTX* presented, void* verifier);
  int VerifyToken(X509_STORE_CTX* presented, VerifiedClient& client) const;
  int VerifyCertificate(X509_STORE_CTX* presented, VerifiedClient& client) const;

  const TokenRegistry& tokens_;
  tls::SslContextPtr context_;
  std::unique_ptr<X509_STORE, tls::Freed<X509_STORE_free>> authorities_;  // null: none
};

}  // namespace hpo::server
