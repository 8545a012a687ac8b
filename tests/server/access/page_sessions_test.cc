#include "server/access/page_sessions.h"

#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

class PageSessionsTest : public testing::Test {
 protected:
  PageSessionsTest() {
    store_ = Store::Open(database_.path()).value();
    tokens_ = TokenRegistry::Load(*store_, clock_).value();
    folder_ = std::filesystem::path(database_.path()).parent_path();
    Reopen();
  }
  void Reopen() { sessions_ = PageSessions::Create(folder_, *tokens_, clock_).value(); }
  std::string Join(const std::string& name, absl::Time expires = absl::InfiniteFuture()) {
    const tls::Secret secret = tokens_->Create(name, Role::kWrite, expires).value();
    return tls::FormatJoinString({.secret = secret, .host = "h", .port = 1});
  }

  const TemporaryDatabase database_;
  SimulatedClock clock_;
  std::string folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TokenRegistry> tokens_;
  std::unique_ptr<PageSessions> sessions_;
};

TEST_F(PageSessionsTest, TakesAJoinStringACommandWithOneAndItsSecret) {
  const std::string join = Join("lab");
  const std::string secret = join.substr(join.find('.', 5) + 1, 47);
  for (const std::string& token : {join, "hpo --join " + join, secret, secret.substr(0, 43)}) {
    const absl::StatusOr<Caller> caller = sessions_->OfToken(token);
    ASSERT_TRUE(caller.ok()) << caller.status();
    EXPECT_EQ(caller->name, "lab");
    EXPECT_EQ(caller->role, Role::kWrite);
  }
  for (const std::string& token :
       {std::string(), std::string(43, 'A'), join.substr(0, 60), secret + "x"}) {
    EXPECT_EQ(sessions_->OfToken(token).status().code(), absl::StatusCode::kUnauthenticated);
  }
}

TEST_F(PageSessionsTest, ACookieOutlivesTheServerAndNotItsTokenNorItsTime) {
  const std::string cookie = sessions_->CookieOf(*sessions_->OfToken(Join("lab")));
  Reopen();
  EXPECT_EQ(sessions_->OfCookie(cookie)->name, "lab");
  std::string forged = cookie;
  forged[2] = forged[2] == '9' ? '8' : '9';
  for (const std::string& other :
       {forged, cookie + "x", cookie.substr(1), std::string(), std::string("..")}) {
    EXPECT_FALSE(sessions_->OfCookie(other).ok()) << other;
  }
  ASSERT_TRUE(tokens_->Revoke("lab").ok());
  EXPECT_THAT(std::string(sessions_->OfCookie(cookie).status().message()), HasSubstr("revoked"));
  const std::string second = sessions_->CookieOf(*sessions_->OfToken(Join("other")));
  clock_.Advance(PageSessions::kLife + absl::Seconds(1));
  EXPECT_THAT(std::string(sessions_->OfCookie(second).status().message()), HasSubstr("ended"));
}

TEST_F(PageSessionsTest, TheKeyIsItsOwnersAlone) {
  struct stat status {};
  ASSERT_EQ(stat((folder_ + "/page-key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(CookieNamed, FindsOneAmongOthers) {
  EXPECT_EQ(CookieNamed("a=1; hpo=x.y=z;b=2", "hpo"), "x.y=z");
  EXPECT_EQ(CookieNamed("hpo2=1", "hpo"), std::nullopt);
  EXPECT_EQ(CookieNamed("", "hpo"), std::nullopt);
}

}  // namespace
}  // namespace hpo::server
