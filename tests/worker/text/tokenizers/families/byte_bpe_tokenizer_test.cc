#include "worker/text/tokenizers/families/byte_bpe_tokenizer.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/worker/text/golden_tokenizers.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ByteBpeGolden, AgreesWithTransformersJsOnRoberta) {
  EXPECT_EQ(ExpectVectors("vectors_transformersjs_roberta.jsonl"), 11);
}

TEST(ByteBpeGolden, AgreesWithHuggingFaceOnHardUnicode) {
  EXPECT_EQ(ExpectVectors("vectors_byte_bpe.jsonl"), 924);
}

class ByteBpeTest : public testing::Test {
 protected:
  ByteBpeTest() {
    folder_.Write("vocab.json", R"({"<s>":0,"<pad>":1,"</s>":2,"<unk>":3,"a":4,"b":5,"ab":6,)"
                                R"("\u0120":7,"\u0120ab":8,"\u00C3":9,"\u00A9":10,"<mask>":11})");
    folder_.Write("merges.txt", "#version: 0.2\na b\n\u0120 ab\n");
  }
  absl::StatusOr<std::unique_ptr<Tokenizer>> Load(ByteBpeFamily family, int64_t rows = 0) {
    const auto config = ReadTokenizerConfig(folder_.path());
    EXPECT_TRUE(config.ok()) << config.status();
    return LoadByteBpeTokenizer(family, folder_.path(), *config, rows);
  }
  std::vector<int32_t> Ids(ByteBpeFamily family, absl::string_view text,
                           std::optional<absl::string_view> pair = std::nullopt) {
    const auto tokenizer = Load(family);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return (*tokenizer)->Encode(text, pair, kNoTruncation).ids;
  }

  TemporaryFolder folder_;
};

TEST_F(ByteBpeTest, RobertaPutsItsTokensAround) {
  EXPECT_THAT(Ids(ByteBpeFamily::kRoberta, "ab ab"), ElementsAre(0, 6, 8, 2));
  EXPECT_THAT(Ids(ByteBpeFamily::kRoberta, "ab", "b"), ElementsAre(0, 6, 2, 2, 5, 2));
  EXPECT_THAT(Ids(ByteBpeFamily::kRoberta, "", ""), ElementsAre(0, 2, 2, 2));
  EXPECT_THAT((*Load(ByteBpeFamily::kRoberta))->Encode("a", "b", kNoTruncation).type_ids,
              ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ((*Load(ByteBpeFamily::kRoberta))->pad_id(), 1);
}

TEST_F(ByteBpeTest, MaskTakesTheBlankBeforeIt) {
  EXPECT_THAT(Ids(ByteBpeFamily::kRoberta, "ab  <mask> ab<pad>"), ElementsAre(0, 6, 11, 8, 1, 2));
}

TEST_F(ByteBpeTest, BytesThatAreNotUtf8AreTheReplacementCharacter) {
  EXPECT_THAT(Ids(ByteBpeFamily::kRoberta, "\u00E9\xC3"), ElementsAre(0, 9, 10, 2));
}

TEST_F(ByteBpeTest, PrefixBlankGoesBeforeEveryPart) {
  folder_.Write("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_THAT(Ids(ByteBpeFamily::kRoberta, "ab<pad>ab<pad> ab"), ElementsAre(0, 8, 1, 8, 1, 8, 2));
}

TEST_F(ByteBpeTest, Gpt2AddsNothingUnlessTold) {
  EXPECT_THAT(Ids(ByteBpeFamily::kGpt2, "ab", "ab"), ElementsAre(6, 6));
  // <|endoftext|> is not in the vocabulary, so that it comes after it.
  EXPECT_THAT(Ids(ByteBpeFamily::kGpt2, "ab<|endoftext|>"), ElementsAre(6, 12));
  EXPECT_THAT((*Load(ByteBpeFamily::kGpt2))->Encode("a", "b", kNoTruncation).type_ids,
              ElementsAre(0, 1));
  folder_.Write("tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<s>"})");
  EXPECT_THAT(Ids(ByteBpeFamily::kGpt2, "ab", "b"), ElementsAre(0, 6, 0, 5));
}

TEST_F(ByteBpeTest, ConfigNamesTokensAndTheirIds) {
  folder_.Write("tokenizer_config.json",
                R"({"pad_token": "<fill>", "added_tokens_decoder": {"20": {"content": "<fill>"},
                    "21": {"content": "<x>", "rstrip": true}}})");
  const auto tokenizer = Load(ByteBpeFamily::kQwen2);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->pad_id(), 20);
  EXPECT_EQ((*tokenizer)->vocab_size(), 23);  // and <|endoftext|>
  EXPECT_THAT((*tokenizer)->Encode("<x>  ab", std::nullopt, 9).ids, ElementsAre(21, 6));
}

TEST_F(ByteBpeTest, DigestTellsFamiliesSettingsAndFilesApart) {
  const std::string digest = (*Load(ByteBpeFamily::kGpt2))->digest();
  EXPECT_EQ(digest, (*Load(ByteBpeFamily::kGpt2))->digest());
  EXPECT_NE(digest, (*Load(ByteBpeFamily::kQwen2))->digest());
  folder_.Write("tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_NE(digest, (*Load(ByteBpeFamily::kGpt2))->digest());
  folder_.Write("tokenizer_config.json", R"({})");
  EXPECT_EQ(digest, (*Load(ByteBpeFamily::kGpt2))->digest());
  folder_.Write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_NE(digest, (*Load(ByteBpeFamily::kGpt2))->digest());
}

TEST_F(ByteBpeTest, RowsOfTheModelAreAtLeastTheTokensAndHardlyMore) {
  const std::pair<int64_t, bool> cases[] = {
      {0, true}, {11, false}, {12, true}, {1035, true}, {1036, false}};
  for (const auto& [rows, taken] : cases) {
    SCOPED_TRACE(rows);
    const auto tokenizer = Load(ByteBpeFamily::kRoberta, rows);
    EXPECT_EQ(tokenizer.ok(), taken);
    if (taken) continue;
    EXPECT_THAT(std::string(tokenizer.status().message()),
                HasSubstr(absl::StrCat("vocab.json: expected ", rows,
                                       " tokens (the model's vocab_size), got 12")));
  }
}

TEST_F(ByteBpeTest, BrokenFilesAreNamed) {
  folder_.Write("merges.txt", "a b\nb c\n");
  EXPECT_THAT(std::string(Load(ByteBpeFamily::kGpt2).status().message()),
              HasSubstr("merges.txt: merge 2: expected 'b', 'c'"));
  folder_.Write("vocab.json", "{\"a\":0,");
  EXPECT_THAT(std::string(Load(ByteBpeFamily::kGpt2).status().message()),
              HasSubstr("vocab.json: expected JSON, got something else at byte 8"));
  const auto missing = LoadByteBpeTokenizer(ByteBpeFamily::kGpt2, "/nowhere", {}, 0);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/nowhere/vocab.json"));
}

}  // namespace
}  // namespace hpo::text
