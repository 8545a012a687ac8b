#include "worker/text/tokenizers/pipeline/phrase_tokens.h"

#include <set>

#include "absl/functional/function_ref.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FindPhrase, GivesEveryWholeWord) {
  EXPECT_THAT(FindPhrase("bar barman (bar), bar", "bar"),
              ElementsAre(ByteRange{0, 3}, ByteRange{12, 15}, ByteRange{18, 21}));
  EXPECT_THAT(FindPhrase("not so cheap", "so cheap"), ElementsAre(ByteRange{4, 12}));
  EXPECT_THAT(FindPhrase("Bar", "bar"), IsEmpty());
  EXPECT_THAT(FindPhrase("bar", ""), IsEmpty());
  EXPECT_THAT(FindPhrase("", "bar"), IsEmpty());
  // A phrase that is no word has no words to cut.
  EXPECT_THAT(FindPhrase("good!! bad!", "!!"), ElementsAre(ByteRange{4, 6}));
}

// Letters beyond ASCII are letters, on either side.
TEST(FindPhrase, KnowsTheLettersOfOtherScripts) {
  EXPECT_THAT(FindPhrase("котельной кот", "кот"), ElementsAre(ByteRange{19, 25}));
  EXPECT_THAT(FindPhrase("übermut mut", "mut"), ElementsAre(ByteRange{9, 12}));
}

TEST(FindPhrase, TakesPartsOfWordsWhereNoneIsWhole) {
  EXPECT_THAT(FindPhrase("服务好价格好", "好"), ElementsAre(ByteRange{6, 9}, ByteRange{15, 18}));
  EXPECT_THAT(FindPhrase("aaaaa", "aa"), ElementsAre(ByteRange{0, 2}, ByteRange{2, 4}));
}

// A phrase of a text and its tokens by Hugging Face's offsets.
struct GoldenPhrase {
  ByteRange bytes;
  int64_t from = 0;  // with a blank's token
  TokenRange tokens;
};

// All words and pairs of words, in every family.
void ForEachGoldenPhrase(
    absl::FunctionRef<void(const TokenizedText& text, const GoldenPhrase&)> check) {
  size_t phrases = 0;
  for (const nlohmann::json& row : GoldenVectors("vectors_phrases.jsonl")) {
    const std::string name = row.at("tokenizer");
    const std::string text = row.at("text");
    const auto tokenizer = GoldenTokenizer(name);
    ASSERT_NE(tokenizer, nullptr);
    const TokenizedText tokens(text, *tokenizer);
    for (const auto& [begin, end, from, first, last] :
         row.at("phrases").get<std::vector<std::array<int64_t, 5>>>()) {
      SCOPED_TRACE(absl::StrCat(name, ": '", text.substr(begin, end - begin), "' of '", text, "'"));
      check(tokens,
            {.bytes = {.begin = static_cast<size_t>(begin), .end = static_cast<size_t>(end)},
             .from = from,
             .tokens = {.begin = first, .end = last}});
      ++phrases;
    }
  }
  EXPECT_EQ(phrases, 1287u);
}

TEST(TokenizedText, AgreesWithTheOffsetsOfHuggingFace) {
  size_t exact = 0;  // without a blank's token
  ForEachGoldenPhrase([&](const TokenizedText& text, const GoldenPhrase& phrase) {
    const TokenRange range = text.TokensOf(phrase.bytes);
    EXPECT_GE(range.begin, phrase.from);
    EXPECT_LE(range.begin, phrase.tokens.begin);
    EXPECT_EQ(range.end, phrase.tokens.end);
    exact += range.begin == phrase.tokens.begin ? 1 : 0;
  });
  EXPECT_EQ(exact, 1259u);
}

TEST(TokenizedText, ATokenThatAnEndCutsIsPartOfIt) {
  const auto letters = MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "aa", "##aa", "b"}, .digest = "letters"}, {});
  // aa ##aa b
  const std::string text = "aaaa b";
  const TokenizedText tokens(text, *letters);
  EXPECT_EQ(tokens.TokensOf({.begin = 0, .end = 2}), (TokenRange{0, 1}));
  EXPECT_EQ(tokens.TokensOf({.begin = 2, .end = 4}), (TokenRange{1, 2}));
  EXPECT_EQ(tokens.TokensOf({.begin = 0, .end = 4}), (TokenRange{0, 2}));
  EXPECT_EQ(tokens.TokensOf({.begin = 1, .end = 3}), (TokenRange{0, 2}));
  EXPECT_EQ(tokens.TokensOf({.begin = 3, .end = 6}), (TokenRange{1, 3}));
  EXPECT_EQ(tokens.TokensOf({.begin = 5, .end = 6}), (TokenRange{2, 3}));
  EXPECT_EQ(TokenizedText("", *letters).TokensOf({.begin = 0, .end = 1}), (TokenRange{0, 0}));
}

// No more than a token's length is looked through: a word of a million letters takes no hour.
TEST(TokenizedText, TakesTheTokensInCommonWhereNoEndIsNear) {
  const std::string word(100, 'a');
  const auto letters = MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "b", word}, .digest = "letters"}, {});
  const std::string text = absl::StrCat("b ", word, " b");
  const TokenizedText tokens(text, *letters);
  EXPECT_EQ(tokens.TokensOf({.begin = 2, .end = 102}), (TokenRange{1, 2}));
  EXPECT_EQ(tokens.TokensOf({.begin = 90, .end = 92}), (TokenRange{1, 2}));
  EXPECT_EQ(tokens.TokensOf({.begin = 10, .end = 12}), (TokenRange{1, 2}));
}

// What TokensOf gave tokens for is found again by them, byte for byte, in every family; with the
// rest of a token that an end of it cuts, as the apostrophe of "'s" for "s".
TEST(TokenizedText, GivesThePhrasesOfTheirTokensBack) {
  size_t exact = 0;
  ForEachGoldenPhrase([&](const TokenizedText& text, const GoldenPhrase& phrase) {
    const TokenRange tokens = text.TokensOf(phrase.bytes);
    const ByteRange found = text.BytesOf(tokens);
    SCOPED_TRACE(absl::StrCat("found '", text.PhraseOf(tokens), "'"));
    EXPECT_LE(found.begin, phrase.bytes.begin);
    EXPECT_GE(found.end, phrase.bytes.end);
    EXPECT_EQ(text.TokensOf(found), tokens);
    exact += found == phrase.bytes ? 1 : 0;
  });
  EXPECT_EQ(exact, 1227u);
}

TEST(TokenizedText, PhrasesAreWholeCharactersWithoutBlanks) {
  const auto letters = MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "aa", "##aa", "b"}, .digest = "letters"}, {});
  // aa ##aa [UNK] [UNK] b
  const std::string text = "  aaaa  \u00e9t\u00e9\tzz   b ";
  const TokenizedText tokens(text, *letters);
  EXPECT_EQ(tokens.PhraseOf({0, 2}), "aaaa");
  EXPECT_EQ(tokens.PhraseOf({0, 1}), "aa");
  EXPECT_EQ(tokens.PhraseOf({1, 2}), "aa");
  EXPECT_EQ(tokens.PhraseOf({2, 3}), "\u00e9t\u00e9");
  EXPECT_EQ(tokens.PhraseOf({2, 4}), "\u00e9t\u00e9\tzz");
  EXPECT_EQ(tokens.PhraseOf({3, 4}), "zz");
  EXPECT_EQ(tokens.PhraseOf({4, 5}), "b");
  EXPECT_EQ(tokens.PhraseOf({0, 5}), "aaaa  \u00e9t\u00e9\tzz   b");
  EXPECT_EQ(tokens.PhraseOf({4, 9}), "b");
  EXPECT_EQ(tokens.PhraseOf({5, 6}), "");
  EXPECT_EQ(TokenizedText("", *letters).PhraseOf({0, 1}), "");
}

// Byte-level tokens: a token of a part of a character gives all of it.
TEST(TokenizedText, NeverGivesAPartOfACharacter) {
  const auto tokenizer = GoldenTokenizer("json-roberta");
  ASSERT_NE(tokenizer, nullptr);
  const std::string text = "so \U0001F600\U0001F9C0 good";
  const TokenizedText tokens(text, *tokenizer);
  const Encoding all = tokenizer->Encode(text, std::nullopt, kNoTruncation);
  const int64_t count = all.text.end - all.text.begin;
  ASSERT_GE(count, 6);
  std::set<std::string> phrases;
  for (int64_t token = 0; token < count; ++token) {
    phrases.insert(tokens.PhraseOf({token, token + 1}));
  }
  // The blank before the signs is a token's too.
  EXPECT_THAT(phrases, ElementsAre("d", "go", "o", "so", "\U0001F600", "\U0001F9C0"));
  EXPECT_EQ(tokens.PhraseOf({1, count}), "\U0001F600\U0001F9C0 good");
}

}  // namespace
}  // namespace hpo::text
