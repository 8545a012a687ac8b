// Keys and certificates: a server's, which it makes at its first start, and a client's, which is
// derived from the secret of its join string.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/tls/join_string.h"
#include "common/tls/openssl_types.h"

namespace hpo::tls {

// A certificate, the rest of its chain, and its key.
struct Identity {
  CertificatePtr certificate;
  std::vector<CertificatePtr> chain;  // without the certificate itself
  KeyPtr key;

  // What clients pin: the last certificate of the chain, the certificate itself where there is
  // none.
  const X509* Anchor() const { return chain.empty() ? certificate.get() : chain.back().get(); }
};

// SHA-256 of the certificate in DER.
Digest CertificateDigest(const X509* certificate);

// SHA-256 of the certificate's public key (SubjectPublicKeyInfo in DER). What a server keeps of a
// secret: who has only this can neither derive the secret nor the private key.
Digest KeyDigest(const X509* certificate);

// A P-256 key, and a certificate of ten years from the day before `now` that it signs itself.
absl::StatusOr<Identity> MakeServerIdentity(const std::string& host, absl::Time now);

// The client's Ed25519 key, which HKDF-SHA256 (RFC 5869) derives from the secret, with a
// certificate that only carries its public key: the server compares that alone.
absl::StatusOr<Identity> DeriveClientIdentity(const Secret& secret);

// Reads a certificate with its chain and a key, in PEM.
//   NotFound, PermissionDenied  a file cannot be read
//   InvalidArgument             not PEM, or the key is not the certificate's
absl::StatusOr<Identity> LoadIdentity(const std::string& certificate_file,
                                      const std::string& key_file);

// Loads tls-cert.pem and tls-key.pem of `folder`, or makes them, mode 0600, where neither is there.
//   FailedPrecondition  one of the two is missing
absl::StatusOr<Identity> LoadOrMakeServerIdentity(const std::string& folder,
                                                  const std::string& host, absl::Time now);

// Whether the certificate's dates contain `now`; an error names dates and clock, and says that one
// of them is wrong.
//   FailedPrecondition  expired or not yet valid
absl::Status CheckDates(const X509* certificate, absl::Time now);

// The end of its time.
absl::Time ExpiryOf(const X509* certificate);

}  // namespace hpo::tls
