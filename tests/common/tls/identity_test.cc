#include "common/tls/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/fakes/temporary_folder.h"

namespace hpo::tls {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TEST(Identity, AServerKeepsTheOneThatItMadeFirst) {
  const TemporaryFolder folder;
  const absl::StatusOr<Identity> made = LoadOrMakeServerIdentity(folder.path(), "host", kNow);
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::StatusOr<Identity> loaded = LoadOrMakeServerIdentity(folder.path(), "host", kNow);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(CertificateDigest(made->certificate.get()),
            CertificateDigest(loaded->certificate.get()));
  for (const char* name : {"/tls-key.pem", "/tls-cert.pem"}) {
    struct stat status {};
    ASSERT_EQ(stat((folder.path() + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << name;
  }
}

TEST(Identity, AServersLastsTenYears) {
  const absl::StatusOr<Identity> made = MakeServerIdentity("host", kNow);
  ASSERT_TRUE(made.ok()) << made.status();
  const X509* const certificate = made->certificate.get();
  EXPECT_TRUE(CheckDates(certificate, kNow).ok());
  EXPECT_TRUE(CheckDates(certificate, kNow + absl::Hours(24 * 3650)).ok());
  const absl::Status late = CheckDates(certificate, kNow + absl::Hours(24 * 3660));
  EXPECT_THAT(std::string(late.message()), HasSubstr("has expired"));
  const absl::Status early = CheckDates(certificate, kNow - absl::Hours(24 * 365));
  EXPECT_THAT(std::string(early.message()), HasSubstr("not yet valid"));
  EXPECT_THAT(std::string(early.message()), HasSubstr("clock"));
}

TEST(Identity, AKeyWithoutItsCertificateIsOfAStartThatWasCutShort) {
  const TemporaryFolder folder;
  ASSERT_TRUE(LoadOrMakeServerIdentity(folder.path(), "host", kNow).ok());
  std::filesystem::remove(folder.path() + "/tls-cert.pem");
  EXPECT_TRUE(LoadOrMakeServerIdentity(folder.path(), "host", kNow).ok());
  std::filesystem::remove(folder.path() + "/tls-key.pem");
  EXPECT_EQ(LoadOrMakeServerIdentity(folder.path(), "host", kNow).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Identity, AClientsIsDerivedFromItsSecretAlone) {
  const Secret secret = RandomSecret();
  const absl::StatusOr<Identity> one = DeriveClientIdentity(secret);
  const absl::StatusOr<Identity> again = DeriveClientIdentity(secret);
  const absl::StatusOr<Identity> other = DeriveClientIdentity(RandomSecret());
  ASSERT_TRUE(one.ok() && again.ok() && other.ok());
  EXPECT_EQ(KeyDigest(one->certificate.get()), KeyDigest(again->certificate.get()));
  EXPECT_NE(KeyDigest(one->certificate.get()), KeyDigest(other->certificate.get()));
}

TEST(Identity, WrongFilesAreNamed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(LoadOrMakeServerIdentity(folder.path(), "host", kNow).ok());
  const std::string certificate = folder.path() + "/tls-cert.pem";
  const std::string key = folder.path() + "/tls-key.pem";
  const std::string text = folder.Write("text", "no PEM");
  EXPECT_THAT(std::string(LoadIdentity(text, key).status().message()),
              HasSubstr("expected a certificate in PEM"));
  EXPECT_THAT(std::string(LoadIdentity(certificate, text).status().message()),
              HasSubstr("expected a private key in PEM"));
  const TemporaryFolder others;
  ASSERT_TRUE(LoadOrMakeServerIdentity(others.path(), "host", kNow).ok());
  EXPECT_THAT(
      std::string(LoadIdentity(certificate, others.path() + "/tls-key.pem").status().message()),
      HasSubstr("got another key"));
  EXPECT_EQ(LoadIdentity(folder.path() + "/none", key).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hpo::tls
