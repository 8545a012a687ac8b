#include "worker/text/tokenizers/parts/bpe.h"

#include <string>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Tokens(const BpeModel& model, absl::string_view word) {
  std::vector<int32_t> ids;
  model.Append(word, ids);
  return ids;
}

// Merges by definition: the best pair of all, leftmost first, until there is none.
std::vector<int32_t> MergedByDefinition(const BpeVocabulary& vocabulary, absl::string_view word) {
  std::vector<int32_t> ids;
  for (const char c : word) {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      if (vocabulary.tokens[id] == std::string(1, c)) ids.push_back(static_cast<int32_t>(id));
    }
  }
  const auto find = [&](const BpeVocabulary::Merge& merge) {
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      if (ids[i] == merge.left && ids[i + 1] == merge.right) return i;
    }
    return ids.size();
  };
  for (size_t rank = 0; rank < vocabulary.merges.size();) {
    const size_t at = find(vocabulary.merges[rank]);
    if (at == ids.size()) {
      ++rank;
      continue;
    }
    ids[at] = vocabulary.merges[rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    rank = 0;
  }
  return ids;
}

// a b c and merges of what random merges give.
BpeVocabulary RandomVocabulary(Rng& rng) {
  BpeVocabulary vocabulary;
  vocabulary.tokens = {"a", "b", "c"};
  for (int i = 0; i < 40; ++i) {
    const auto draw = [&] { return static_cast<int32_t>(rng.Below(vocabulary.tokens.size())); };
    const int32_t left = draw();
    const int32_t right = draw();
    const std::string text = vocabulary.tokens[static_cast<size_t>(left)] +
                             vocabulary.tokens[static_cast<size_t>(right)];
    bool known = text.size() > 12;
    for (const std::string& token : vocabulary.tokens) known |= token == text;
    if (known) continue;
    vocabulary.merges.push_back({left, right, static_cast<int32_t>(vocabulary.tokens.size()),
                                 static_cast<uint32_t>(vocabulary.merges.size())});
    vocabulary.tokens.push_back(text);
  }
  return vocabulary;
}

TEST(Bpe, ShortAndLongWordsMergeAsDefined) {
  Rng rng(11, 2);
  for (int round = 0; round < 60; ++round) {
    const BpeVocabulary vocabulary = RandomVocabulary(rng);
    const BpeModel model(vocabulary);
    for (const size_t length : {1, 2, 7, 31, 32, 33, 34, 80, 300}) {
      std::string word;
      for (size_t i = 0; i < length; ++i) word.push_back("abc"[rng.Below(3)]);
      ASSERT_EQ(Tokens(model, word), MergedByDefinition(vocabulary, word)) << word;
    }
  }
}

TEST(Bpe, WordOfAHundredThousandCharacters) {
  BpeVocabulary vocabulary;
  vocabulary.tokens = {"a"};
  for (int32_t i = 0; i < 10; ++i) {
    vocabulary.merges.push_back({i, i, i + 1, static_cast<uint32_t>(i)});
    vocabulary.tokens.push_back(vocabulary.tokens.back() + vocabulary.tokens.back());
  }
  const std::vector<int32_t> ids = Tokens(BpeModel(vocabulary), std::string(100'000, 'a'));
  // 97 times 1024, then 672 = 512 + 128 + 32.
  ASSERT_EQ(ids.size(), 100);
  EXPECT_EQ(ids[96], 10);
  EXPECT_THAT(std::vector<int32_t>(ids.begin() + 97, ids.end()), ElementsAre(9, 7, 5));
}

BpeVocabulary SmallBpe() {
  return {.unit = BpeVocabulary::Unit::kCharacter,
          .tokens = {"<unk>", "a", "b", "ab", "\u00E9", "abb", "\u00E9a"},
          .merges = {{1, 2, 3, 0}, {4, 1, 6, 1}}};
}

TEST(Bpe, TokensThatMergesDoNotReachAreNotUsed) {
  EXPECT_THAT(Tokens(BpeModel(SmallBpe()), "abb"), ElementsAre(3, 2));
  BpeVocabulary ignoring = SmallBpe();
  ignoring.ignore_merges = true;
  EXPECT_THAT(Tokens(BpeModel(ignoring), "abb"), ElementsAre(5));
  EXPECT_THAT(Tokens(BpeModel(ignoring), "abba"), ElementsAre(3, 2, 1));
}

TEST(Bpe, UnitsAreCharactersOrBytes) {
  EXPECT_THAT(Tokens(BpeModel(SmallBpe()), "\u00E9ab"), ElementsAre(4, 3));
  EXPECT_THAT(Tokens(BpeModel(SmallBpe()), "\u00E9aa"), ElementsAre(6, 1));
  BpeVocabulary bytes = SmallBpe();
  bytes.unit = BpeVocabulary::Unit::kByte;
  EXPECT_THAT(Tokens(BpeModel(bytes), "\u00E9ab"), ElementsAre(3));
}

TEST(Bpe, UnknownCharactersAreDroppedOrUnknownOrFused) {
  BpeVocabulary vocabulary = SmallBpe();
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "axyb"), ElementsAre(3));
  vocabulary.unknown_id = 0;
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "axyb"), ElementsAre(1, 0, 0, 2));
  vocabulary.fuse_unknown = true;
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "axybz"), ElementsAre(1, 0, 2, 0));
}

TEST(Bpe, UnknownCharactersFallBackToBytesWhereAllAreThere) {
  BpeVocabulary vocabulary = SmallBpe();
  vocabulary.unknown_id = 0;
  vocabulary.byte_tokens[0xE2] = 20;
  vocabulary.byte_tokens[0x82] = 21;
  vocabulary.byte_tokens[0xAC] = 22;
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "a\u20AC\u20ADb"), ElementsAre(1, 20, 21, 22, 0, 2));
}

// Words between blank symbols are merged one by one where no token reaches from one to the next.
TEST(Bpe, TokensAcrossBlankSymbolsAreFound) {
  BpeVocabulary vocabulary = {.unit = BpeVocabulary::Unit::kCharacter,
                              .tokens = {"\u2581", "a", "\u2581a", "\u2581\u2581"},
                              .merges = {{0, 1, 2, 0}, {0, 0, 3, 1}}};
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "\u2581a\u2581\u2581\u2581aa\u2581"),
              ElementsAre(2, 3, 2, 1, 0));
  vocabulary.tokens.push_back("a\u2581");
  vocabulary.merges.push_back({1, 0, 4, 2});
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "\u2581a\u2581\u2581\u2581aa\u2581"),
              ElementsAre(2, 3, 2, 4));
}

// ignore_merges looks at the whole word alone.
TEST(Bpe, IgnoringMergesTakesWholeTextsOnly) {
  const BpeVocabulary vocabulary = {.unit = BpeVocabulary::Unit::kCharacter,
                                    .tokens = {"\u2581", "a", "b", "\u2581ab"},
                                    .ignore_merges = true};
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "\u2581ab"), ElementsAre(3));
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "\u2581ab\u2581ab"), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Bpe, FrozenTokensAreTakenWhole) {
  BpeVocabulary vocabulary = SmallBpe();
  vocabulary.tokens.push_back("bab");
  vocabulary.frozen = {7};
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "abab"), ElementsAre(1, 7));
  EXPECT_THAT(Tokens(BpeModel(vocabulary), "aba"), ElementsAre(3, 1));
}

}  // namespace
}  // namespace hpo::text
