#include "common/base/utf8.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

TEST(FindInvalidUtf8, GivesTheFirstBadByte) {
  const std::pair<std::string, size_t> cases[] = {
      {"", std::string::npos},
      {std::string("a\0b", 3), std::string::npos},
      {"é日\U0001F600", std::string::npos},
      {"a\x80", 1},
      {"é\xE2\x82", 2},
      {"\xC0\xAF", 0},
      {"ab\xED\xA0\x80", 2},
      {"\xF4\x90\x80\x80", 0},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(FindInvalidUtf8(text), expected);
  }
}

TEST(CountCharacters, CountsCodePoints) {
  EXPECT_EQ(CountCharacters(""), 0);
  EXPECT_EQ(CountCharacters("aé日\U0001F600"), 4);
}

TEST(CharacterBegin, IsTheFirstByteOfTheCharacter) {
  const std::string text = "aé日\U0001F600";
  const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6};
  ASSERT_EQ(text.size(), std::size(expected));
  for (size_t place = 0; place < text.size(); ++place) {
    EXPECT_EQ(CharacterBegin(text, place), expected[place]) << place;
  }
}

}  // namespace
}  // namespace hpo::text
