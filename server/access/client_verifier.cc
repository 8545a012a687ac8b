// Tested by tests/server/gate/tls_gate_test.cc.
#include "server/access/client_verifier.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

constexpr long kLargestChainOfToken = 4 << 10;       // NOLINT(google-runtime-int): OpenSSL's type
constexpr long kLargestChainOfAuthority = 32 << 10;  // NOLINT(google-runtime-int)
constexpr unsigned char kHttp2[] = "\x02h2";

// Prefers what OpenSSL prefers; a client that offers other protocols than HTTP/2 is refused.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  unsigned char* selected = nullptr;
  const int result =
      SSL_select_next_proto(&selected, size, kHttp2, sizeof(kHttp2) - 1, offered, offered_size);
  *chosen = selected;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::string PartOf(const X509* certificate, int kind) {
  std::array<char, 128> text{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), kind, text.data(),
                                             static_cast<int>(text.size()));
  return size > 0 ? std::string(text.data()) : "";
}

// A number below 0 of the certificate, which its limits go by.
int64_t TokenOf(X509* certificate) {
  const tls::Digest digest = tls::CertificateDigest(certificate);
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof(number));
  return -1 - static_cast<int64_t>(number >> 1);
}

int Refuse(X509_STORE_CTX* presented, VerifiedClient& client, int error, std::string why) {
  client.why = std::move(why);
  X509_STORE_CTX_set_error(presented, error);
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientVerifier>> ClientVerifier::Create(
    const tls::Identity& server, const std::string& client_ca_file, const TokenRegistry& tokens) {
  std::unique_ptr<ClientVerifier> verifier(new ClientVerifier(tokens));
  HPO_RETURN_IF_ERROR(verifier->MakeContext(server, !client_ca_file.empty()));
  if (!client_ca_file.empty()) HPO_RETURN_IF_ERROR(verifier->LoadAuthorities(client_ca_file));
  return verifier;
}

absl::Status ClientVerifier::MakeContext(const tls::Identity& server, bool has_authorities) {
  context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = context_.get();
  bool made = context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
              SSL_CTX_use_certificate(context, server.certificate.get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, server.key.get()) == 1;
  for (const tls::CertificatePtr& one : server.chain) {
    made = made && SSL_CTX_add1_chain_cert(context, one.get()) == 1;
  }
  if (!made) return absl::InternalError(absl::StrCat("TLS: ", tls::TakeOpensslError()));
  // No resumption: each connection proves its token anew, and nothing can be replayed.
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, Verify, this);
  SSL_CTX_set_max_cert_list(context,
                            has_authorities ? kLargestChainOfAuthority : kLargestChainOfToken);
  return absl::OkStatus();
}

absl::Status ClientVerifier::LoadAuthorities(const std::string& file) {
  authorities_.reset(X509_STORE_new());
  if (X509_STORE_load_file(authorities_.get(), file.c_str()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--tls-client-ca: expected certificates in PEM in ", file,
                   ", got: ", tls::TakeOpensslError()));
}

tls::SslPtr ClientVerifier::NewHandshake(VerifiedClient& client) const {
  tls::SslPtr handshake(SSL_new(context_.get()));
  SSL_set_app_data(handshake.get(), &client);
  return handshake;
}

// 1: admitted. Otherwise the error decides about the alert, by which the client learns the reason.
int ClientVerifier::Verify(X509_STORE_CTX* presented, void* verifier) {
  auto* const handshake = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(presented, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& client = *static_cast<VerifiedClient*>(SSL_get_app_data(handshake));
  return static_cast<const ClientVerifier*>(verifier)->VerifyToken(presented, client);
}

int ClientVerifier::VerifyToken(X509_STORE_CTX* presented, VerifiedClient& client) const {
  const Admission admission = tokens_.Admit(tls::KeyDigest(X509_STORE_CTX_get0_cert(presented)));
  if (admission.verdict != Admission::Verdict::kUnknown) {
    client.caller = Caller{.token = admission.token,
                           .name = admission.name,
                           .role = admission.role,
                           .from = client.from,
                           .expires = admission.expires};
  }
  switch (admission.verdict) {
    case Admission::Verdict::kAdmitted:
      return 1;
    case Admission::Verdict::kRevoked:
      return Refuse(presented, client, X509_V_ERR_CERT_REVOKED, "the token has been revoked");
    case Admission::Verdict::kExpired:
      return Refuse(presented, client, X509_V_ERR_CERT_HAS_EXPIRED,
                    "the token has expired or was replaced");
    case Admission::Verdict::kUnknown:
      break;
  }
  if (authorities_ != nullptr) return VerifyCertificate(presented, client);
  return Refuse(presented, client, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "no such token");
}

int ClientVerifier::VerifyCertificate(X509_STORE_CTX* presented, VerifiedClient& client) const {
  X509* const leaf = X509_STORE_CTX_get0_cert(presented);
  const std::unique_ptr<X509_STORE_CTX, tls::Freed<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), authorities_.get(), leaf,
                      X509_STORE_CTX_get0_untrusted(presented));
  X509_VERIFY_PARAM_set_purpose(X509_STORE_CTX_get0_param(context.get()), X509_PURPOSE_SSL_CLIENT);
  if (X509_verify_cert(context.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    return Refuse(presented, client, error,
                  absl::StrCat(X509_verify_cert_error_string(error), " (of certificate '",
                               PartOf(leaf, NID_commonName), "')"));
  }
  client.caller =
      Caller{.token = TokenOf(leaf),
             .name = absl::StrCat("certificate:", PartOf(leaf, NID_commonName)),
             .role = RoleNamed(PartOf(leaf, NID_organizationalUnitName)).value_or(Role::kRead),
             .from = client.from,
             .expires = tls::ExpiryOf(leaf)};
  return 1;
}

}  // namespace hpo::server
