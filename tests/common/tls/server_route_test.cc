#include "common/tls/server_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/fakes/temporary_folder.h"

namespace hpo::tls {
namespace {

using testing::HasSubstr;

JoinString JoinTo(const std::string& host) {
  return {.certificate = {}, .secret = {}, .host = host, .port = 1};
}

class JoinSourceTest : public testing::Test {
 protected:
  ~JoinSourceTest() override {
    unsetenv("HPO_JOIN");
    unsetenv("HPO_JOIN_FILE");
  }
  static std::string HostFrom(const std::string& option) {
    const auto source = JoinSource::Find(option);
    if (!source.ok()) return std::string(source.status().message());
    return *source ? (*source)->Read()->host : "none";
  }
  const TemporaryFolder folder_;
};

TEST_F(JoinSourceTest, OptionBeatsVariableBeatsFile) {
  EXPECT_EQ(HostFrom(""), "none");
  setenv("HPO_JOIN_FILE", folder_.Write("join", FormatJoinString(JoinTo("file"))).c_str(), 1);
  EXPECT_EQ(HostFrom(""), "file");
  setenv("HPO_JOIN", FormatJoinString(JoinTo("variable")).c_str(), 1);
  EXPECT_EQ(HostFrom(""), "variable");
  EXPECT_EQ(HostFrom(FormatJoinString(JoinTo("option"))), "option");
  EXPECT_EQ(HostFrom("file:" + folder_.path() + "/join"), "file");
}

TEST_F(JoinSourceTest, WhatIsThereAndCannotBeUsedIsAnError) {
  setenv("HPO_JOIN_FILE", (folder_.path() + "/none").c_str(), 1);
  EXPECT_THAT(HostFrom(""), HasSubstr("HPO_JOIN_FILE"));
  setenv("HPO_JOIN", "hpo1.short", 1);
  EXPECT_THAT(HostFrom(""), HasSubstr("HPO_JOIN: the join string is damaged"));
  EXPECT_THAT(HostFrom("x"), HasSubstr("--join: the join string is damaged"));
}

TEST_F(JoinSourceTest, AFileIsReadAgain) {
  const std::string path = folder_.Write("join", FormatJoinString(JoinTo("one")));
  const auto source = JoinSource::Find("file:" + path);
  ASSERT_TRUE(source.ok() && source->has_value());
  folder_.Write("join", FormatJoinString(JoinTo("two")));
  EXPECT_EQ((*source)->Read()->host, "two");
}

TEST(PrivateArguments, KeepTheSecretFromTheCommandLine) {
  std::string program = "hpo-worker";
  std::string word = "--join=" + FormatJoinString(JoinTo("host"));
  std::string other = "--name=hpo1.me";
  const std::string before = word;
  char* arguments[] = {program.data(), word.data(), other.data(), nullptr};
  const PrivateArguments words(3, arguments);
  ASSERT_EQ(words.count(), 3);
  EXPECT_EQ(std::string(words.data()[1]), before);
  EXPECT_EQ(other, "--name=hpo1.me");
  const size_t secret = before.find('.', before.find('.') + 1) + 1;
  EXPECT_EQ(word.substr(0, secret), before.substr(0, secret));
  EXPECT_EQ(word.substr(secret, 47), std::string(47, '*'));
  EXPECT_EQ(word.substr(secret + 47), "@host:1");
}

TEST(FindRoute, WithoutAJoinStringIsPlaintext) {
  const absl::StatusOr<ServerRoute> route = FindRoute(std::nullopt, "127.0.0.1:5");
  ASSERT_TRUE(route.ok());
  EXPECT_EQ(route->shown, "127.0.0.1:5");
  EXPECT_EQ(route->dialed, "127.0.0.1:5");
  EXPECT_EQ(route->forwarder, nullptr);
  EXPECT_TRUE(route->Trouble().ok());
}

}  // namespace
}  // namespace hpo::tls
