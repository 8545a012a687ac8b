#include "common/base/utf8.h"

#include <string>
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

}  // namespace
}  // namespace hpo
