#include "common/files/log_tail.h"

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr auto kMost = static_cast<size_t>(kLogTailLimit.most);

TEST(CheckedLogTail, KeepsWhatIsShortAndReadable) {
  for (const std::string text : {"", "one", "one\n", "one\n\n\ttwo\n", "größe ☃ 𝄞\n"}) {
    EXPECT_EQ(CheckedLogTail(text), text);
  }
}

TEST(CheckedLogTail, ReplacesWhatSteersATerminalAndWhatIsNoText) {
  const std::pair<std::string, std::string> cases[] = {
      {"\x1b[31mred\x1b[0m", "?[31mred?[0m"},    {"10 %\r20 %", "10 %?20 %"},
      {std::string("a\0b", 3), "a?b"},           {"a\x7f\xc2\x9b", "a??"},
      {"right\xe2\x80\xae left", "right? left"}, {"\xff\xfe half \xe2\x98", "?? half ??"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(CheckedLogTail(text), expected);
  }
}

TEST(CheckedLogTail, CutsBetweenLines) {
  std::string text;
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&text, "line ", i, "\n");
  const std::string tail = CheckedLogTail(text);
  EXPECT_LE(tail.size(), kMost);
  EXPECT_GT(tail.size() + std::string("line 4999\n").size(), kMost);
  EXPECT_EQ(tail.substr(0, 5), "line ");
  EXPECT_EQ(text.substr(text.size() - tail.size()), tail);
  EXPECT_EQ(text[text.size() - tail.size() - 1], '\n');
}

TEST(CheckedLogTail, KeepsAWholeLineThatJustFits) {
  const std::string line = std::string(kMost - 1, 'x') + "\n";
  EXPECT_EQ(CheckedLogTail("before\n" + line), line);
}

TEST(CheckedLogTail, KeepsTheEndOfALineThatIsTooLong) {
  std::string text;
  while (text.size() < 3 * kMost) text += "☃";
  for (const std::string end : {"", "\n"}) {
    const std::string tail = CheckedLogTail("before\n" + text + end);
    EXPECT_LE(tail.size(), kMost);
    EXPECT_GE(tail.size(), kMost - 3);
    EXPECT_EQ(ValidUtf8Prefix(tail), tail.size());
    EXPECT_EQ(tail.find('?'), std::string::npos);
  }
}

}  // namespace
}  // namespace hpo
