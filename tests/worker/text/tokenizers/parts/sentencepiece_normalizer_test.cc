#include "worker/text/tokenizers/parts/sentencepiece_normalizer.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace hpo::text {
namespace {

std::string Normalized(SentencePieceNormalization options, absl::string_view text) {
  return SentencePieceNormalizer(std::move(options)).Normalize(text);
}

TEST(SentencePieceNormalizer, JoinsBlanksAndPutsOneBefore) {
  EXPECT_EQ(Normalized({}, "  a  b "), "\u2581a\u2581b");
  EXPECT_EQ(Normalized({}, "a\t\n b"), "\u2581a\t\n\u2581b");  // blanks alone: no rules here
  EXPECT_EQ(Normalized({}, "   "), "");
  EXPECT_EQ(Normalized({}, ""), "");
}

TEST(SentencePieceNormalizer, KeepsBlanksWhereTold) {
  const SentencePieceNormalization options = {.remove_extra_whitespaces = false};
  EXPECT_EQ(Normalized(options, "  a  b "), "\u2581\u2581\u2581a\u2581\u2581b\u2581");
  EXPECT_EQ(Normalized(options, " "), "\u2581\u2581");
  EXPECT_EQ(Normalized(options, ""), "");
}

TEST(SentencePieceNormalizer, PrefixAndSymbolAreOptions) {
  EXPECT_EQ(Normalized({.add_dummy_prefix = false}, " a b"), "a\u2581b");
  EXPECT_EQ(Normalized({.escape_whitespaces = false}, " a  b "), " a b");
  EXPECT_EQ(Normalized({.blank_as_suffix = true}, " a  b "), "a\u2581b\u2581");
}

TEST(SentencePieceNormalizer, UserDefinedPiecesStayAsTheyAre) {
  const SentencePieceNormalization options = {.user_defined = {"a  b"}};
  // The blanks of the piece are written as symbols all the same.
  EXPECT_EQ(Normalized(options, "x  a  b  y"), "\u2581x\u2581a\u2581\u2581b\u2581y");
}

}  // namespace
}  // namespace hpo::text
