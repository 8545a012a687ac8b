#include "server/access/token_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "common/tls/identity.h"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {
namespace {

using Verdict = Admission::Verdict;
using testing::HasSubstr;

tls::Digest KeyOf(const tls::Secret& secret) {
  return tls::KeyDigest(tls::DeriveClientIdentity(secret)->certificate.get());
}

class TokenRegistryTest : public testing::Test {
 protected:
  TokenRegistryTest() { Reopen(); }

  void Reopen() {
    tokens_.reset();
    store_.reset();
    store_ = Store::Open(database_.path()).value();
    tokens_ = TokenRegistry::Load(*store_, clock_).value();
  }
  Verdict VerdictOn(const tls::Secret& secret) { return tokens_->Admit(KeyOf(secret)).verdict; }

  const TemporaryDatabase database_;
  SimulatedClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TokenRegistry> tokens_;
};

TEST_F(TokenRegistryTest, AdmitsWhoHasASecretAlsoAfterARestart) {
  const tls::Secret secret = tokens_->Create("lab", Role::kWork, absl::InfiniteFuture()).value();
  for (int i = 0; i < 2; ++i) {
    const Admission admission = tokens_->Admit(KeyOf(secret));
    EXPECT_EQ(admission.verdict, Verdict::kAdmitted);
    EXPECT_EQ(admission.name, "lab");
    EXPECT_EQ(admission.role, Role::kWork);
    EXPECT_EQ(VerdictOn(tls::RandomSecret()), Verdict::kUnknown);
    Reopen();
  }
}

TEST_F(TokenRegistryTest, TheDatabaseHasNeitherSecretNorKey) {
  const tls::Secret secret = tokens_->Create("lab", Role::kAdmin, absl::InfiniteFuture()).value();
  const tls::Identity identity = tls::DeriveClientIdentity(secret).value();
  std::array<uint8_t, 32> key{};
  size_t size = key.size();
  ASSERT_EQ(EVP_PKEY_get_raw_private_key(identity.key.get(), key.data(), &size), 1);
  const auto text = [](const std::array<uint8_t, 32>& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::string files;
  for (const char* suffix : {"", "-wal"}) {
    std::ifstream file(database_.path() + suffix, std::ios::binary);
    files.append(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_GT(files.size(), 1000U);
  for (const std::string& hidden : {text(secret), text(key)}) {
    EXPECT_EQ(files.find(hidden), std::string::npos);
    EXPECT_EQ(files.find(absl::BytesToHexString(hidden)), std::string::npos);
  }
}

TEST_F(TokenRegistryTest, ExpiryIsTheServersClock) {
  const tls::Secret secret =
      tokens_->Create("short", Role::kRead, clock_.Now() + absl::Hours(1)).value();
  EXPECT_EQ(VerdictOn(secret), Verdict::kAdmitted);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(VerdictOn(secret), Verdict::kExpired);
}

TEST_F(TokenRegistryTest, ARevokedOneNeverComesBack) {
  const tls::Secret secret = tokens_->Create("lab", Role::kRead, absl::InfiniteFuture()).value();
  const int64_t id = tokens_->Admit(KeyOf(secret)).token;
  EXPECT_TRUE(tokens_->IsValid(id));
  ASSERT_TRUE(tokens_->Revoke("lab").ok());
  EXPECT_FALSE(tokens_->IsValid(id));
  EXPECT_EQ(VerdictOn(secret), Verdict::kRevoked);
  Reopen();
  EXPECT_EQ(VerdictOn(secret), Verdict::kRevoked);
  EXPECT_EQ(tokens_->Revoke("lab").code(), absl::StatusCode::kNotFound);
  // The name is free; the old secret stays out.
  const tls::Secret next = tokens_->Create("lab", Role::kRead, absl::InfiniteFuture()).value();
  EXPECT_EQ(VerdictOn(next), Verdict::kAdmitted);
  EXPECT_EQ(VerdictOn(secret), Verdict::kRevoked);
}

TEST_F(TokenRegistryTest, TheLastAdministratorStays) {
  ASSERT_TRUE(tokens_->Create("first", Role::kAdmin, absl::InfiniteFuture()).ok());
  ASSERT_TRUE(tokens_->Create("lab", Role::kWrite, absl::InfiniteFuture()).ok());
  ASSERT_TRUE(tokens_->Create("brief", Role::kAdmin, clock_.Now() + absl::Hours(1)).ok());
  clock_.Advance(absl::Hours(2));  // `brief` has expired
  const absl::Status refused = tokens_->Revoke("first");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("create another one first"));
  ASSERT_TRUE(tokens_->Rotate("first", absl::Hours(1), std::nullopt).ok());
  EXPECT_FALSE(tokens_->Revoke("first").ok());  // its two secrets are one token
  ASSERT_TRUE(tokens_->Create("second", Role::kAdmin, absl::InfiniteFuture()).ok());
  EXPECT_TRUE(tokens_->Revoke("first").ok());
  EXPECT_FALSE(tokens_->Revoke("second").ok());
  EXPECT_TRUE(tokens_->Revoke("lab").ok());
}

TEST_F(TokenRegistryTest, ARotationLeavesTimeToChange) {
  const tls::Secret old = tokens_->Create("lab", Role::kWrite, absl::InfiniteFuture()).value();
  const tls::Secret next = tokens_->Rotate("lab", absl::Minutes(10), std::nullopt).value();
  EXPECT_EQ(VerdictOn(old), Verdict::kAdmitted);
  EXPECT_EQ(VerdictOn(next), Verdict::kAdmitted);
  EXPECT_EQ(tokens_->Admit(KeyOf(next)).role, Role::kWrite);
  const std::vector<TokenInfo> listed = tokens_->List();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].previous_until, clock_.Now() + absl::Minutes(10));
  EXPECT_EQ(listed[0].expires, absl::InfiniteFuture());
  clock_.Advance(absl::Minutes(10));
  EXPECT_EQ(VerdictOn(old), Verdict::kExpired);
  EXPECT_EQ(VerdictOn(next), Verdict::kAdmitted);
  // After a leak, at once.
  const tls::Secret last = tokens_->Rotate("lab", absl::ZeroDuration(), std::nullopt).value();
  EXPECT_EQ(VerdictOn(next), Verdict::kExpired);
  EXPECT_EQ(VerdictOn(last), Verdict::kAdmitted);
  EXPECT_EQ(VerdictOn(old), Verdict::kExpired);
}

TEST_F(TokenRegistryTest, NamesAreChecked) {
  ASSERT_TRUE(tokens_->Create("a.b-c_1", Role::kRead, absl::InfiniteFuture()).ok());
  EXPECT_EQ(tokens_->Create("a.b-c_1", Role::kRead, absl::InfiniteFuture()).status().code(),
            absl::StatusCode::kAlreadyExists);
  for (const std::string& name : {std::string(), std::string("../x"), std::string("a b"),
                                  std::string(65, 'x'), std::string("\xff")}) {
    EXPECT_EQ(tokens_->Create(name, Role::kRead, absl::InfiniteFuture()).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_EQ(tokens_->Rotate("none", absl::ZeroDuration(), std::nullopt).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hpo::server
