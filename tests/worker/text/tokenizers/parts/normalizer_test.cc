#include "worker/text/tokenizers/parts/normalizer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::text {
namespace {

struct NormalizerCase {
  std::string text;
  std::string words;
};

void ExpectWords(const BertNormalization& options, const std::vector<NormalizerCase>& cases) {
  const BertNormalizer normalizer(options);
  for (const auto& [text, words] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(normalizer.Words(text), words);
  }
}

TEST(BertNormalizer, SplitsAtBlanksAndPunctuation) {
  ExpectWords({}, {{"", ""},
                   {" \t\n\r\u00A0\u3000", ""},
                   {"a  b", "a b "},
                   {"don't stop...", "don ' t stop . . . "},
                   {"$5+a`b~", "$ 5 + a ` b ~ "},
                   {"«x»—y…", "« x » — y … "}});
}

TEST(BertNormalizer, LowersAndStripsAccents) {
  ExpectWords({}, {{"HÉLLO", "hello "},
                   {"e\u0301 \u1E69", "e s "},
                   {"\u0130stanbul", "istanbul "},
                   {"\u212A", "k "},
                   {"ΑΣ", "ασ "},                        // character by character: no final sigma
                   {"\u037E", "; "},                     // decomposes to a semicolon
                   {"\uD55C", "\u1112\u1161\u11AB "}});  // Hangul decomposes to jamo
}

TEST(BertNormalizer, CasedTextKeepsCaseAndAccents) {
  ExpectWords({.lowercase = false, .strip_accents = false},
              {{"HÉLLO e\u0301", "HÉLLO e\u0301 "}, {"\uD55C", "\uD55C "}});
}

TEST(BertNormalizer, AccentsAndCaseAreIndependent) {
  ExpectWords({.lowercase = true, .strip_accents = false},
              {{"HÉLLO", "héllo "}, {"\u0130x", "i\u0307x "}});
  ExpectWords({.lowercase = false, .strip_accents = true}, {{"HÉLLO", "HELLO "}});
}

TEST(BertNormalizer, SetsIdeographsApart) {
  const std::vector<NormalizerCase> apart = {
      {"日本語", "日 本 語 "}, {"a\U00020000b", "a \U00020000 b "}, {"のテ", "のテ "}};
  ExpectWords({}, apart);
  ExpectWords({.split_cjk = false}, {{"日本x", "日本x "}});
}

TEST(BertNormalizer, DropsControlFormatAndPrivateCharacters) {
  ExpectWords({}, {{std::string("a\0b", 3), "ab "},
                   {"a\x1b\x7f\x0b"
                    "b",
                    "ab "},
                   {"a\u200Bb\u00ADc\uFEFF\uE000", "abc "},
                   {"a\uFFFDb", "ab "}});
}

TEST(BertNormalizer, DropsBytesThatAreNotUtf8) {
  ExpectWords({}, {{"a\x80"
                    "b",
                    "ab "},
                   {"a\xE2\x82", "a "},            // cut off
                   {"a\xE2\x82zb", "azb "},        // cut short by a letter
                   {"\xC0\xAF.", ". "},            // overlong
                   {"x\xED\xA0\x80y", "xy "},      // a surrogate
                   {"x\xF4\x90\x80\x80y", "xy "},  // above U+10FFFF
                   {"\xFF\xFE", ""}});
}

}  // namespace
}  // namespace hpo::text
