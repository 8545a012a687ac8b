#include "worker/text/tokenizers/families/sentencepiece_tokenizer.h"

#include <string>
#include <utility>
#include <vector>

#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/tokenizers/make_tokenizer.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SentencePieceGolden, AgreesWithEveryVectorOfSentencePiece) {
  EXPECT_EQ(ExpectVectors("vectors_sentencepiece.jsonl"), 430);
}

TEST(SentencePieceGolden, AgreesInEveryFamilyOnHardUnicode) {
  EXPECT_EQ(ExpectVectors("vectors_sentencepiece_families.jsonl"), 948);
}

std::unique_ptr<Tokenizer> Load(SentencePieceFamily family, const std::string& name,
                                const TokenizerConfig& config = {}) {
  auto tokenizer =
      LoadSentencePieceTokenizer(family, GoldenTokenizersPath(name), config, /*model_rows=*/0);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(SentencePieceFamilies, XlmRobertaNumbersAsFairseq) {
  const auto xlmr = Load(SentencePieceFamily::kXlmRoberta, "xlmr-like");
  const auto plain = MakeTokenizerOfFolder(GoldenTokenizersPath("sentencepiece-test"));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(xlmr->pad_id(), 1);
  EXPECT_EQ(xlmr->Encode("", "", kNoTruncation).ids, (std::vector<int32_t>{0, 2, 2, 2}));
  // <mask> has the last id.
  EXPECT_EQ(xlmr->Encode("<mask>", std::nullopt, kNoTruncation).ids[1], xlmr->vocab_size() - 1);
}

TEST(SentencePieceFamilies, DebertaAddsItsMask) {
  const auto deberta = Load(SentencePieceFamily::kDebertaV2, "deberta-like");
  EXPECT_EQ(deberta->pad_id(), 0);
  const std::vector<int32_t> ids = deberta->Encode("[MASK][PAD]", "", kNoTruncation).ids;
  EXPECT_THAT(ids, ElementsAre(1, deberta->vocab_size() - 1, 0, 2, 2));
  EXPECT_THAT(deberta->Encode("", "", kNoTruncation).type_ids, ElementsAre(0, 0, 1));
}

TEST(SentencePieceFamilies, DebertaLowersCaseWhereTold) {
  const auto cased = Load(SentencePieceFamily::kDebertaV2, "deberta-like");
  const auto lowered =
      Load(SentencePieceFamily::kDebertaV2, "deberta-like", {.do_lower_case = true});
  EXPECT_EQ(lowered->Encode("WHAT is", std::nullopt, 32),
            cased->Encode("what is", std::nullopt, 32));
  EXPECT_NE(lowered->digest(), cased->digest());
}

TEST(SentencePieceFamilies, LlamaBeginsAndEndsAsTold) {
  const auto ends = [](const TokenizerConfig& config) {
    return Load(SentencePieceFamily::kLlama, "llama-like", config)->Encode("", "", 9).ids;
  };
  EXPECT_THAT(ends({}), ElementsAre(1, 1));
  EXPECT_THAT(ends({.add_bos_token = false}), ElementsAre());
  EXPECT_THAT(ends({.add_eos_token = true}), ElementsAre(1, 2, 1, 2));
}

TEST(SentencePieceFamilies, PlainNeedsOneModel) {
  TemporaryFolder folder;
  const auto path = SentencePieceFile(SentencePieceFamily::kPlain, folder.path());
  EXPECT_EQ(path.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("(*.model), got 0"));
  folder.Write("a.model", "");
  EXPECT_EQ(*SentencePieceFile(SentencePieceFamily::kPlain, folder.path()),
            folder.path() + "/a.model");
  folder.Write("b.model", "");
  EXPECT_FALSE(SentencePieceFile(SentencePieceFamily::kPlain, folder.path()).ok());
}

TEST(SentencePieceFamilies, AnotherModelsFileIsRefused) {
  const auto tokenizer = LoadSentencePieceTokenizer(
      SentencePieceFamily::kDebertaV2, GoldenTokenizersPath("deberta-like"), {}, 128100);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr("deberta-like/spm.model: expected 128100 tokens"));
}

TEST(SentencePieceFamilies, MissingFileIsNamed) {
  const auto tokenizer =
      LoadSentencePieceTokenizer(SentencePieceFamily::kXlmRoberta, "/nowhere", {}, 0);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr("/nowhere/sentencepiece.bpe.model"));
}

}  // namespace
}  // namespace hpo::text
