#include "common/tls/identity.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"

namespace hpo::tls {
namespace {

using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;
using KdfPtr = std::unique_ptr<EVP_KDF, Freed<EVP_KDF_free>>;
using KdfContextPtr = std::unique_ptr<EVP_KDF_CTX, Freed<EVP_KDF_CTX_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr int kOwnerOnly = 0600;
constexpr absl::Duration kServerLife = absl::Hours(24 * 3653);
constexpr char kDerivationLabel[] = "hpo join string, client key, version 1";

absl::Status OpensslFailed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("OpenSSL: ", what, ": ", TakeOpensslError()));
}

absl::Status SetDates(X509* certificate, absl::Time from, absl::Time until) {
  const bool set =
      ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(from)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(until)) != nullptr;
  return set ? absl::OkStatus() : OpensslFailed("the dates of a certificate");
}

absl::Status AddExtension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpensslFailed(absl::StrCat("the extension ", value));
  }
  return absl::OkStatus();
}

// Unsigned, with a random serial number, its own issuer.
absl::StatusOr<CertificatePtr> MakeCertificate(EVP_PKEY* key, const std::string& name,
                                               absl::Time from, absl::Time until) {
  CertificatePtr certificate(X509_new());
  constexpr int kVersion3 = 2;
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
  const bool made =
      X509_set_version(certificate.get(), kVersion3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate.get(), subject) == 1 &&
      X509_set_pubkey(certificate.get(), key) == 1;
  if (!made) return OpensslFailed("a certificate");
  HPO_RETURN_IF_ERROR(SetDates(certificate.get(), from, until));
  return certificate;
}

absl::StatusOr<KeyPtr> DeriveKey(const Secret& secret) {
  const KdfPtr kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const KdfContextPtr context(EVP_KDF_CTX_new(kdf.get()));
  std::string digest = "SHA256";
  std::string label = kDerivationLabel;
  Secret input = secret;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, input.data(), input.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, label.data(), label.size()),
      OSSL_PARAM_construct_end()};
  std::array<uint8_t, 32> seed{};
  if (EVP_KDF_derive(context.get(), seed.data(), seed.size(), parameters) != 1) {
    return OpensslFailed("HKDF");
  }
  KeyPtr key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  if (key == nullptr) return OpensslFailed("an Ed25519 key");
  return key;
}

std::string PemOf(const Identity& identity, bool of_key) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  const int written = of_key ? PEM_write_bio_PrivateKey(memory.get(), identity.key.get(), nullptr,
                                                        nullptr, 0, nullptr, nullptr)
                             : PEM_write_bio_X509(memory.get(), identity.certificate.get());
  HPO_CHECK(written == 1);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<size_t>(size)};
}

absl::Status WriteSecretFile(const std::string& path, const std::string& content) {
  DurableFile file(path, kOwnerOnly);
  HPO_RETURN_IF_ERROR(file.Create());
  HPO_RETURN_IF_ERROR(file.Write(content.data(), content.size()));
  return file.Commit();
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

}  // namespace

Digest CertificateDigest(const X509* certificate) {
  Digest digest{};
  unsigned int size = 0;
  HPO_CHECK(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1);
  return digest;
}

Digest KeyDigest(const X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  HPO_CHECK(size > 0);
  Digest digest{};
  unsigned int digest_size = 0;
  EVP_Digest(der, static_cast<size_t>(size), digest.data(), &digest_size, EVP_sha256(), nullptr);
  OPENSSL_free(der);
  return digest;
}

absl::StatusOr<Identity> MakeServerIdentity(const std::string& host, absl::Time now) {
  Identity identity;
  identity.key.reset(EVP_EC_gen("P-256"));
  if (identity.key == nullptr) return OpensslFailed("a P-256 key");
  const absl::Time from = now - absl::Hours(24);
  HPO_ASSIGN_OR_RETURN(identity.certificate,
                       MakeCertificate(identity.key.get(), "hpo-server", from, from + kServerLife));
  X509* const certificate = identity.certificate.get();
  HPO_RETURN_IF_ERROR(AddExtension(certificate, NID_basic_constraints, "critical,CA:FALSE"));
  HPO_RETURN_IF_ERROR(AddExtension(certificate, NID_ext_key_usage, "serverAuth"));
  HPO_RETURN_IF_ERROR(AddExtension(certificate, NID_subject_alt_name, absl::StrCat("DNS:", host)));
  if (X509_sign(certificate, identity.key.get(), EVP_sha256()) == 0) {
    return OpensslFailed("signing a certificate");
  }
  return identity;
}

absl::StatusOr<Identity> DeriveClientIdentity(const Secret& secret) {
  Identity identity;
  HPO_ASSIGN_OR_RETURN(identity.key, DeriveKey(secret));
  const absl::Time until =
      absl::FromCivil(absl::CivilSecond(9999, 12, 31, 23, 59, 59), absl::UTCTimeZone());
  HPO_ASSIGN_OR_RETURN(identity.certificate,
                       MakeCertificate(identity.key.get(), "hpo client", absl::UnixEpoch(), until));
  if (X509_sign(identity.certificate.get(), identity.key.get(), nullptr) == 0) {
    return OpensslFailed("signing a certificate");
  }
  return identity;
}

absl::StatusOr<Identity> LoadIdentity(const std::string& certificate_file,
                                      const std::string& key_file) {
  HPO_ASSIGN_OR_RETURN(const std::string pem, ReadFile(certificate_file));
  HPO_ASSIGN_OR_RETURN(const std::string key_pem, ReadFile(key_file));
  const auto open = [](const std::string& text) {
    return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  };
  Identity identity;
  const BioPtr certificates = open(pem);
  identity.certificate.reset(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
  if (identity.certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        certificate_file, ": expected a certificate in PEM, got: ", TakeOpensslError()));
  }
  while (X509* const next = PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr)) {
    identity.chain.emplace_back(next);
  }
  TakeOpensslError();  // "no start line" at the end of the file
  // Without a terminal to ask on: a key with a password is refused.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  identity.key.reset(PEM_read_bio_PrivateKey(open(key_pem).get(), nullptr, no_password, nullptr));
  if (identity.key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        key_file, ": expected a private key in PEM without a password, got: ", TakeOpensslError()));
  }
  if (X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1) {
    TakeOpensslError();
    return absl::InvalidArgumentError(absl::StrCat(
        key_file, ": expected the key of the certificate ", certificate_file, ", got another key"));
  }
  return identity;
}

absl::StatusOr<Identity> LoadOrMakeServerIdentity(const std::string& folder,
                                                  const std::string& host, absl::Time now) {
  const std::string certificate_file = folder + "/tls-cert.pem";
  const std::string key_file = folder + "/tls-key.pem";
  std::error_code error;
  const bool has_certificate = std::filesystem::exists(certificate_file, error);
  const bool has_key = std::filesystem::exists(key_file, error);
  if (has_certificate && has_key) return LoadIdentity(certificate_file, key_file);
  // The key is written first: a lone key is of a first start that was cut short.
  if (has_certificate) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected the key ", key_file, " of ", certificate_file,
        ": it is missing; remove the certificate too for a new pair, after which every "
        "client needs a new join string"));
  }
  HPO_ASSIGN_OR_RETURN(Identity identity, MakeServerIdentity(host, now));
  HPO_RETURN_IF_ERROR(WriteSecretFile(key_file, PemOf(identity, /*of_key=*/true)));
  HPO_RETURN_IF_ERROR(WriteSecretFile(certificate_file, PemOf(identity, /*of_key=*/false)));
  return identity;
}

absl::Time ExpiryOf(const X509* certificate) { return TimeOf(X509_get0_notAfter(certificate)); }

absl::Status CheckDates(const X509* certificate, absl::Time now) {
  const absl::Time from = TimeOf(X509_get0_notBefore(certificate));
  const absl::Time until = ExpiryOf(certificate);
  if (from <= now && now <= until) return absl::OkStatus();
  const auto format = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
  };
  return absl::FailedPreconditionError(
      absl::StrCat(now < from ? "the certificate is not yet valid" : "the certificate has expired",
                   ": it is valid from ", format(from), " to ", format(until),
                   ", and this machine's clock says ", format(now),
                   "; renew the certificate, or set the clock right"));
}

}  // namespace hpo::tls
