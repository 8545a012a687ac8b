#include "worker/text/tokenizers/parts/split_pattern.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAreArray;

std::vector<std::string> Words(SplitPattern pattern, absl::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t size = FirstWordSize(pattern, text);
    if (size == 0 || size > text.size()) {
      ADD_FAILURE() << "a word of " << size << " bytes of " << text.size();
      break;
    }
    words.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return words;
}

struct SplitCase {
  const char* text;
  std::vector<std::string> words;
};

TEST(SplitPattern, Gpt2) {
  const SplitCase cases[] = {
      {"Hello world", {"Hello", " world"}},
      {"I'll don't we'VE", {"I", "'ll", " don", "'t", " we", "'", "VE"}},
      {"'select", {"'s", "elect"}},
      {"a1b 22 .5!", {"a", "1", "b", " 22", " .", "5", "!"}},
      {"a   b", {"a", "  ", " b"}},
      {"a \t b", {"a", " \t", " b"}},
      {"a\t\tb", {"a", "\t", "\t", "b"}},
      {"a\nb\n\n", {"a", "\n", "b", "\n\n"}},
      {"a  ", {"a", "  "}},
      {" ", {" "}},
      {"a\u00A0b\u2003\u2003c", {"a", "\u00A0", "b", "\u2003", "\u2003", "c"}},
      {"\u0301e\u0301", {"\u0301", "e", "\u0301"}},
      {"\u0967\u2167\u00BD x", {"\u0967\u2167\u00BD", " x"}},
      {"\U0001F600\U0001F601\u200D!a", {"\U0001F600\U0001F601\u200D!", "a"}},
  };
  for (const SplitCase& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(Words(SplitPattern::kGpt2, c.text), ElementsAreArray(c.words));
  }
}

TEST(SplitPattern, Llama3AndQwen2) {
  const SplitCase cases[] = {
      {"Hello world", {"Hello", " world"}},
      {"I'LL don't it'\u017F", {"I", "'LL", " don", "'t", " it", "'\u017F"}},
      {"'Select", {"'S", "elect"}},
      {"\ttab !bang", {"\ttab", " !", "bang"}},
      {"(a !!b", {"(a", " !!", "b"}},
      {"x!\r\n\ny", {"x", "!\r\n\n", "y"}},
      {"a \n \n  b", {"a", " \n \n", " ", " b"}},
      {"a\n\n", {"a", "\n\n"}},
      {"\nb", {"\n", "b"}},
      {"a   b", {"a", "  ", " b"}},
      {"a  !", {"a", " ", " !"}},
      {"a\t!", {"a", "\t", "!"}},
      {"  ", {"  "}},
  };
  for (const SplitPattern pattern : {SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    for (const SplitCase& c : cases) {
      SCOPED_TRACE(c.text);
      EXPECT_THAT(Words(pattern, c.text), ElementsAreArray(c.words));
    }
  }
  EXPECT_THAT(Words(SplitPattern::kLlama3, "12345 6"), ElementsAreArray({"123", "45", " ", "6"}));
  EXPECT_THAT(Words(SplitPattern::kQwen2, "123 4"), ElementsAreArray({"1", "2", "3", " ", "4"}));
}

TEST(SplitPattern, IsKnownByItsRegularExpressionAlone) {
  EXPECT_EQ(SplitPatternOf(
                R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
            SplitPattern::kGpt2);
  EXPECT_EQ(SplitPatternOf(R"(\s+)"), std::nullopt);
  EXPECT_EQ(SplitPatternOf(""), std::nullopt);
}

}  // namespace
}  // namespace hpo::text
