#include "common/command_line/misplaced_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/tls/join_string.h"

namespace hpo {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kSecret = "hpo1." + std::string(43, 'a') + "." + std::string(47, 'b') + "@host:5";

// Empty: nothing is wrong.
std::string Found(std::vector<std::string> words) {
  std::vector<const char*> pointers = {"hpo"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return FindMisplacedSecret(static_cast<int>(pointers.size()), pointers.data()).value_or("");
}

TEST(MisplacedSecret, TheValueOfJoinIsInItsPlace) {
  EXPECT_EQ(Found({"--join", kSecret, "status"}), "");
  EXPECT_EQ(Found({"--join=" + kSecret}), "");
  EXPECT_EQ(Found({"--join", "hpo-worker --join " + kSecret}), "");
  EXPECT_EQ(Found({"status", "--join", "file:/run/join-read"}), "");
  EXPECT_EQ(Found({"--server", "hpo1.example.org:50051"}), "");
}

TEST(MisplacedSecret, AnywhereElseItIsRefusedUnseen) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--server", kSecret}, "--server: "},
      {{"--server=" + kSecret}, "--server: "},
      {{"--join", "file:" + kSecret}, "--join: "},
      {{"--join=file:" + kSecret}, "--join: "},
      {{"connect", "--listen", kSecret}, "--listen: "},
      {{"study", "show", kSecret}, "the command line: "},
      {{kSecret}, "the command line: "},
      {{"fleet", "ray", "--", "--server", kSecret}, "--server: "},
      {{"fleet", "ray", "--", "--join", kSecret}, "--join: "},
      {{"fleet", "ray", "--", kSecret}, "the command line: "},
      {{"--" + kSecret + "=x"}, "the command line: "},
  };
  for (const auto& [words, place] : cases) {
    const std::string found = Found(words);
    EXPECT_THAT(found, StartsWith(place));
    EXPECT_THAT(found, HasSubstr("HPO_JOIN_FILE"));
    EXPECT_THAT(found, Not(HasSubstr("aaa")));
    EXPECT_THAT(found, Not(HasSubstr("bbb")));
  }
}

TEST(MisplacedSecret, VariablesThatNameSomethingElseAreReadToo) {
  for (const char* variable : {"HPO_SERVER", "HPO_JOIN_FILE", "HPO_STUDY"}) {
    setenv(variable, kSecret.c_str(), /*overwrite=*/1);
    EXPECT_THAT(Found({"status"}), StartsWith(std::string(variable) + ": "));
    unsetenv(variable);
  }
}

// The prefix stands here and in common/tls, which this library is below.
TEST(MisplacedSecret, KnowsTheJoinStringsThatServersPrint) {
  const tls::JoinString join{.secret = tls::RandomSecret(), .host = "host", .port = 5};
  EXPECT_TRUE(HasJoinString(tls::FormatJoinString(join)));
}

TEST(MisplacedSecret, AJoinStringIsKnownByItsLetters) {
  EXPECT_TRUE(HasJoinString(kSecret));
  EXPECT_TRUE(HasJoinString("x=" + kSecret.substr(0, 40)));
  EXPECT_TRUE(HasJoinString("hpo1.x hpo1." + std::string(16, '-')));
  EXPECT_FALSE(HasJoinString("hpo1...."));
  EXPECT_FALSE(HasJoinString("hpo1.example.org"));
  EXPECT_FALSE(HasJoinString(""));
}

}  // namespace
}  // namespace hpo
