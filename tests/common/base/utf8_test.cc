#include "common/base/utf8.h"

#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

TEST(ValidUtf8Prefix, StopsBeforeTheFirstBadByte) {
  const std::pair<std::string, size_t> cases[] = {
      {"", 0},
      {"plain", 5},
      {std::string("nul\0nul", 7), 7},
      {"\xC3\xA9", 2},          // U+00E9
      {"\xE2\x82\xAC", 3},      // U+20AC
      {"\xF0\x9F\x98\x80", 4},  // U+1F600
      {"\xF4\x8F\xBF\xBF", 4},  // U+10FFFF, the last
      {"ab\x80", 2},            // a continuation alone
      {"ab\xC3", 2},            // cut short
      {"ab\xE2\x82", 2},
      {"ab\xC3(", 2},
      {"ab\xE2\x82(", 2},
      {"\xC0\xAF", 0},          // overlong '/'
      {"\xE0\x9F\xBF", 0},      // overlong
      {"\xF0\x8F\xBF\xBF", 0},  // overlong
      {"\xED\xA0\x80", 0},      // surrogate
      {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xFF", 0},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(absl::CHexEscape(text));
    EXPECT_EQ(ValidUtf8Prefix(text), expected);
  }
}

TEST(FirstUtf8Character, IsACodePointOrAByteThatIsNone) {
  const std::tuple<std::string, uint32_t, size_t> cases[] = {
      {"ab", 'a', 1},
      {"\xC3\xA9x", 0xE9, 2},
      {"\xE2\x82\xACx", 0x20AC, 3},
      {"\xF0\x9F\x98\x80x", 0x1F600, 4},
      {"\x80x", 0, 1},
      {"\xE2\x82", 0, 1},
  };
  for (const auto& [text, code, size] : cases) {
    SCOPED_TRACE(absl::CHexEscape(text));
    EXPECT_EQ(FirstUtf8Character(text).code, code);
    EXPECT_EQ(FirstUtf8Character(text).size, size);
  }
}

TEST(CutAfter, KeepsCharactersWhole) {
  EXPECT_EQ(CutAfter("abcd", 4), "abcd");
  EXPECT_EQ(CutAfter("abcde", 4), "abcd...");
  EXPECT_EQ(CutAfter("ab\xE2\x82\xAC", 4), "ab...");
  EXPECT_EQ(CutAfter("ab\xE2\x82\xACx", 5), "ab\xE2\x82\xAC...");
}

}  // namespace
}  // namespace hpo
