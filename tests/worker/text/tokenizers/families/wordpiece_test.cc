#include "worker/text/tokenizers/families/wordpiece.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/text/golden_tokenizers.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;

class WordPieceGolden : public testing::Test {
 protected:
  const Tokenizer& Get(const std::string& name) {
    std::unique_ptr<Tokenizer>& tokenizer = tokenizers_[name];
    if (tokenizer == nullptr) tokenizer = GoldenTokenizer(name);
    return *tokenizer;
  }

 private:
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers_;
};

TEST_F(WordPieceGolden, AgreesWithTransformersJs) {
  const auto rows = GoldenVectors("vectors_transformersjs_bert.jsonl");
  ASSERT_EQ(rows.size(), 76);
  for (nlohmann::json row : rows) {
    SCOPED_TRACE(row.at("case").dump());
    if (row.contains("text_pair")) row["pair"] = row.at("text_pair");
    ExpectVector(Get(row.at("tokenizer")), row);
  }
}

TEST_F(WordPieceGolden, AgreesOnEverySquadQuestion) {
  const auto rows = GoldenVectors("vectors_squad_bert_uncased.jsonl");
  ASSERT_EQ(rows.size(), 1510);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.at("text").dump());
    std::vector<int32_t> expected = {101};
    for (const int32_t id : row.at("ids")) expected.push_back(id);
    expected.push_back(102);
    const std::string text = row.at("text");
    const Encoding encoding = Get("bert-base-uncased").Encode(text, std::nullopt, kNoTruncation);
    EXPECT_EQ(encoding.ids, expected);
  }
}

TEST(WordPieceHardUnicode, AgreesWithHuggingFace) {
  EXPECT_EQ(ExpectVectors("vectors_hard_unicode.jsonl"), 832);
}

// Bytes, of which many are not UTF-8, at every truncation.
TEST_F(WordPieceGolden, AnyBytesGiveAnInputThatTheModelTakes) {
  const Tokenizer& tokenizer = Get("bert-base-cased");
  Rng rng(3, 1);
  const auto draw_text = [&] {
    std::string text(rng.Below(80), ' ');
    for (char& c : text) c = static_cast<char>(rng.Below(rng.Below(2) == 0 ? 256 : 128));
    return text;
  };
  for (int i = 0; i < 2'000; ++i) {
    const std::string text = draw_text();
    const std::string other = draw_text();
    std::optional<absl::string_view> pair;
    if (i % 2 == 0) pair = other;
    const int64_t specials = tokenizer.NumSpecialTokens(pair.has_value());
    const int64_t max_length = specials + static_cast<int64_t>(rng.Below(40));
    const Encoding whole = tokenizer.Encode(text, pair, kNoTruncation);
    const Encoding encoding = tokenizer.Encode(text, pair, max_length);
    const int64_t length = static_cast<int64_t>(encoding.ids.size());
    ASSERT_EQ(length, std::min(max_length, static_cast<int64_t>(whole.ids.size())));
    ASSERT_EQ(encoding.type_ids.size(), encoding.ids.size());
    ASSERT_EQ(encoding.ids.front(), 101);
    ASSERT_EQ(encoding.ids.back(), 102);
    for (const int32_t id : encoding.ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, tokenizer.vocab_size());
    }
    if (pair.has_value()) {
      const auto first_of_pair = std::find(encoding.type_ids.begin(), encoding.type_ids.end(), 1);
      ASSERT_NE(first_of_pair, encoding.type_ids.end());
      ASSERT_EQ(encoding.ids[first_of_pair - encoding.type_ids.begin() - 1], 102);
    }
  }
}

Vocabulary SmallVocabulary() {
  return {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "unaff", "##a",
                     "able", "a", "A"},
          .digest = "small"};
}

TEST(WordPiece, TakesTheLongestPieceFirstAndNeverGoesBack) {
  const auto tokenizer = MakeBertTokenizer(SmallVocabulary(), {});
  EXPECT_THAT(tokenizer->Pieces("unaffable"), ElementsAre(7, 6));
  EXPECT_THAT(tokenizer->Pieces("un able una"), ElementsAre(4, 9, 4, 8));
  // "unaff" then "##ab?": no piece, although "un" "##aff" would not help either.
  EXPECT_THAT(tokenizer->Pieces("unaffab able"), ElementsAre(1, 9));
  EXPECT_THAT(tokenizer->Pieces(""), ElementsAre());
}

TEST(WordPiece, VocabularyWithoutContinuationsHasWholeWordsOnly) {
  const auto tokenizer = MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"}, .digest = "none"}, {});
  EXPECT_THAT(tokenizer->Pieces("a b ab"), ElementsAre(4, 5, 1));
}

TEST(WordPiece, LengthLimitOfWordsCountsCharacters) {
  const auto tokenizer = MakeBertTokenizer(SmallVocabulary(), {});
  EXPECT_EQ(tokenizer->Pieces(std::string(100, 'a')).size(), 100);
  EXPECT_THAT(tokenizer->Pieces(std::string(101, 'a')), ElementsAre(1));
}

TEST(WordPiece, DigestTellsVocabulariesAndSettingsApart) {
  const auto digest = [](const Vocabulary& vocabulary, BertNormalization normalization) {
    return MakeBertTokenizer(vocabulary, normalization)->digest();
  };
  const std::string base = digest(SmallVocabulary(), {});
  Vocabulary other = SmallVocabulary();
  other.digest = "other";
  EXPECT_EQ(base, digest(SmallVocabulary(), {}));
  EXPECT_NE(base, digest(other, {}));
  EXPECT_NE(base, digest(SmallVocabulary(), {.lowercase = false}));
  EXPECT_NE(base, digest(SmallVocabulary(), {.strip_accents = false}));
  EXPECT_NE(base, digest(SmallVocabulary(), {.split_cjk = false}));
}

TEST(BertNormalizationOf, AccentsFollowCasingUnlessStated) {
  const std::pair<const char*, BertNormalization> cases[] = {
      {"{}", {true, true, true}},
      {R"({"do_lower_case":false})", {false, false, true}},
      {R"({"do_lower_case":true,"strip_accents":null})", {true, true, true}},
      {R"({"do_lower_case":true,"strip_accents":false})", {true, false, true}},
      {R"({"do_lower_case":false,"strip_accents":true,"tokenize_chinese_chars":false})",
       {false, true, false}},
  };
  for (const auto& [json, expected] : cases) {
    SCOPED_TRACE(json);
    const auto parsed = ParseTokenizerConfig(json, "tokenizer_config.json");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(BertNormalizationOf(*parsed), expected);
  }
}

}  // namespace
}  // namespace hpo::text
