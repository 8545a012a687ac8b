#include "common/tls/join_string.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hpo::tls {
namespace {

using testing::HasSubstr;
using testing::Not;

JoinString Example() {
  JoinString join{.host = "gpu-head.example.org", .port = 50051};
  for (size_t i = 0; i < join.certificate.size(); ++i) {
    join.certificate[i] = static_cast<uint8_t>(i);
    join.secret[i] = static_cast<uint8_t>(255 - i);
  }
  return join;
}

TEST(JoinString, IsReadAsItWasWritten) {
  JoinString join = Example();
  for (const char* host : {"gpu-head.example.org", "10.0.0.1", "fe80::1"}) {
    join.host = host;
    const std::string text = FormatJoinString(join);
    const absl::StatusOr<JoinString> read = ParseJoinString(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, join) << text;
  }
}

TEST(JoinString, IsTakenWithTheCommandThatTheServerPrints) {
  const std::string text = FormatJoinString(Example());
  for (const std::string& pasted : {"  " + text + "\n", "hpo-worker --join " + text + "\r\n",
                                    "hpo --join=" + text, "\"" + text + "\""}) {
    const absl::StatusOr<JoinString> read = ParseJoinString(pasted);
    ASSERT_TRUE(read.ok()) << pasted << read.status();
    EXPECT_EQ(*read, Example());
  }
}

TEST(JoinString, AnyPartThatIsCutOffIsMissed) {
  const std::string text = FormatJoinString(Example());
  for (size_t size = 0; size < text.find(':') + 2; ++size) {
    const absl::Status status = ParseJoinString(text.substr(0, size)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text.substr(0, size);
    EXPECT_THAT(std::string(status.message()), HasSubstr("copy the whole line"));
  }
}

TEST(JoinString, AnyLetterThatIsChangedIsNoticed) {
  const std::string text = FormatJoinString(Example());
  for (size_t i = 5; i < text.find('@'); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    const absl::Status status = ParseJoinString(changed).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << changed;
  }
}

TEST(JoinString, AnErrorNeverShowsTheSecret) {
  std::string text = FormatJoinString(Example());
  const std::string secret = text.substr(49, 43);
  text[60] = text[60] == 'A' ? 'B' : 'A';
  for (const std::string& wrong : {text, text.substr(0, 90), "hpo2" + text.substr(4)}) {
    const absl::Status status = ParseJoinString(wrong).status();
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(secret.substr(20))));
  }
}

TEST(JoinString, ALaterVersionIsNamed) {
  const absl::Status status = ParseJoinString("hpo2.abc.def@host:1").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("another version of hpo"));
}

TEST(JoinString, SecretsDiffer) { EXPECT_NE(RandomSecret(), RandomSecret()); }

}  // namespace
}  // namespace hpo::tls
