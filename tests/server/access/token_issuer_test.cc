#include "server/access/token_issuer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "common/tls/identity.h"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {
namespace {

class TokenIssuerTest : public testing::Test {
 protected:
  std::string LineOf(const std::string& name) const {
    std::ifstream file(issuer_.FileOf(name));
    std::string line;
    std::getline(file, line);
    return line;
  }

  const TemporaryDatabase database_;
  SimulatedClock clock_;
  std::unique_ptr<Store> store_ = Store::Open(database_.path()).value();
  std::unique_ptr<TokenRegistry> tokens_ = TokenRegistry::Load(*store_, clock_).value();
  int num_changes_ = 0;
  uint64_t asking_ = 0;
  std::string line_at_change_;
  TokenIssuer issuer_{{.folder = std::filesystem::path(database_.path()).parent_path().string(),
                       .certificate = {},
                       .host = "host",
                       .port = 5},
                      *tokens_,
                      clock_,
                      [this](uint64_t asking) {
                        ++num_changes_;
                        asking_ = asking;
                        line_at_change_ = LineOf("work");
                      }};
};

TEST_F(TokenIssuerTest, TheFirstStartMakesATokenForEachRole) {
  ASSERT_TRUE(issuer_.MakeFirstTokens().ok());
  EXPECT_EQ(issuer_.List().size(), 4U);
  EXPECT_EQ(LineOf("work").substr(0, 18), "hpo-worker --join ");
  for (const char* name : {"read", "work", "write", "admin"}) {
    const auto join = tls::ParseJoinString(LineOf(name));
    ASSERT_TRUE(join.ok()) << join.status();
    EXPECT_EQ(join->Address(), "host:5");
    struct stat status {};
    ASSERT_EQ(stat(issuer_.FileOf(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
  }
  // Only the first.
  const std::string line = LineOf("work");
  ASSERT_TRUE(issuer_.MakeFirstTokens().ok());
  EXPECT_EQ(LineOf("work"), line);
}

TEST_F(TokenIssuerTest, FilesFollowTheirTokens) {
  ASSERT_TRUE(issuer_.MakeFirstTokens().ok());
  const std::string before = LineOf("work");
  const auto rotated = issuer_.Rotate("work", absl::Hours(1), std::nullopt);
  ASSERT_TRUE(rotated.ok()) << rotated.status();
  EXPECT_EQ(num_changes_, 1);
  EXPECT_NE(LineOf("work"), before);
  EXPECT_EQ(LineOf("work"), "hpo-worker --join " + rotated->join);
  ASSERT_TRUE(issuer_.Revoke("work", /*asking=*/7).ok());
  EXPECT_EQ(num_changes_, 2);
  EXPECT_EQ(asking_, 7U);
  EXPECT_FALSE(std::filesystem::exists(issuer_.FileOf("work")));
}

TEST_F(TokenIssuerTest, TheFileIsNewBeforeTheOldSecretEnds) {
  ASSERT_TRUE(issuer_.MakeFirstTokens().ok());
  ASSERT_TRUE(issuer_.Rotate("work", absl::ZeroDuration(), std::nullopt).ok());
  EXPECT_EQ(line_at_change_, LineOf("work"));
}

TEST_F(TokenIssuerTest, WhereTheFileCannotBeWrittenTheOldSecretWorks) {
  ASSERT_TRUE(issuer_.MakeFirstTokens().ok());
  const tls::Secret old = tls::ParseJoinString(LineOf("work"))->secret;
  std::filesystem::remove(issuer_.FileOf("work"));
  std::filesystem::create_directories(issuer_.FileOf("work") + "/x");
  EXPECT_FALSE(issuer_.Rotate("work", absl::ZeroDuration(), std::nullopt).ok());
  const tls::Identity identity = tls::DeriveClientIdentity(old).value();
  EXPECT_EQ(tokens_->Admit(tls::KeyDigest(identity.certificate.get())).verdict,
            Admission::Verdict::kAdmitted);
  EXPECT_EQ(num_changes_, 0);
}

TEST_F(TokenIssuerTest, FilesNameTheAddressAndTheCertificateOfThisStart) {
  ASSERT_TRUE(issuer_.MakeFirstTokens().ok());
  const auto before = tls::ParseJoinString(LineOf("work"));
  std::ofstream(issuer_.FileOf("read")) << "damaged";
  const tls::Digest other{1, 2, 3};
  const TokenIssuer later({.folder = std::filesystem::path(database_.path()).parent_path().string(),
                           .certificate = other,
                           .host = "host2",
                           .port = 6},
                          *tokens_, clock_, nullptr);
  ASSERT_TRUE(later.RefreshFiles().ok());
  const auto after = tls::ParseJoinString(LineOf("work"));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->Address(), "host2:6");
  EXPECT_EQ(after->certificate, other);
  EXPECT_EQ(after->secret, before->secret);
  EXPECT_EQ(LineOf("work").substr(0, 18), "hpo-worker --join ");
  EXPECT_EQ(LineOf("read"), "damaged");
}

TEST_F(TokenIssuerTest, ALifetimeCountsFromNow) {
  const auto made = issuer_.Create("ci", Role::kRead, absl::Hours(24));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->token.expires, clock_.Now() + absl::Hours(24));
  EXPECT_FALSE(std::filesystem::exists(issuer_.FileOf("ci")));
}

TEST(ReachableHost, KeepsAnAddressThatIsOne) {
  EXPECT_EQ(ReachableHost("10.1.2.3"), "10.1.2.3");
  EXPECT_FALSE(ReachableHost("0.0.0.0").empty());
}

}  // namespace
}  // namespace hpo::server
