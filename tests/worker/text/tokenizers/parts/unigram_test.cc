#include "worker/text/tokenizers/parts/unigram.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<int32_t> Tokens(const UnigramVocabulary& vocabulary, absl::string_view word) {
  std::vector<int32_t> ids;
  UnigramModel(vocabulary).Append(word, ids);
  return ids;
}

UnigramVocabulary SmallUnigram() {
  return {.pieces = {{"a", -3, 1}, {"b", -3, 2}, {"ab", -4, 3}, {"bc", -1, 4}, {"c", -5, 5}},
          .unknown_score = -20};
}

TEST(Unigram, TakesTheBestPathNotTheLongestPiece) {
  EXPECT_THAT(Tokens(SmallUnigram(), "ab"), ElementsAre(3));
  EXPECT_THAT(Tokens(SmallUnigram(), "abc"), ElementsAre(1, 4));
  EXPECT_THAT(Tokens(SmallUnigram(), "abab"), ElementsAre(3, 3));
  EXPECT_THAT(Tokens(SmallUnigram(), "c"), ElementsAre(5));
}

TEST(Unigram, RunsOfUnknownCharactersAreOneToken) {
  EXPECT_THAT(Tokens(SmallUnigram(), "xyz"), ElementsAre(0));
  EXPECT_THAT(Tokens(SmallUnigram(), "x\u00E9ab\U0001F600"), ElementsAre(0, 3, 0));
}

TEST(Unigram, UnknownCharactersFallBackToBytesWhereAllAreThere) {
  UnigramVocabulary vocabulary = SmallUnigram();
  for (size_t byte = 0; byte < 256; ++byte) {
    vocabulary.byte_tokens[byte] = static_cast<int32_t>(1000 + byte);
  }
  EXPECT_THAT(Tokens(vocabulary, "a\u00E9x"), ElementsAre(1, 1000 + 0xC3, 1000 + 0xA9, 1000 + 'x'));
  vocabulary.byte_tokens['x'] = -1;
  EXPECT_THAT(Tokens(vocabulary, "a\u00E9x"), ElementsAre(1, 0));
}

TEST(Unigram, AddsToIdsThatAreThere) {
  std::vector<int32_t> ids = {7};
  UnigramModel(SmallUnigram()).Append("ab", ids);
  EXPECT_THAT(ids, ElementsAre(7, 3));
}

// Of equal paths the first found stays, and single precision sees paths as equal that are not.
TEST(Unigram, PrecisionDecidesNearTies) {
  UnigramVocabulary vocabulary = {.pieces = {{"a", -1, 1}, {"aa", -2.00001, 2}},
                                  .unknown_score = -20};
  vocabulary.precision = UnigramVocabulary::Precision::kDouble;
  EXPECT_THAT(Tokens(vocabulary, std::string(50'000, 'a')), Each(1));
  vocabulary.precision = UnigramVocabulary::Precision::kSingle;
  const std::vector<int32_t> ids = Tokens(vocabulary, std::string(50'000, 'a'));
  EXPECT_LT(ids.size(), 50'000);
}

}  // namespace
}  // namespace hpo::text
