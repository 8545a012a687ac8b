#include "worker/text/tokenizers/pipeline/tokenizer.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/tokenizers/make_tokenizer.h"

namespace hpo::text {
namespace {

using ::testing::HasSubstr;

class MakeTokenizerTest : public testing::Test {
 protected:
  MakeTokenizerTest() {
    shape_.family = "bert";
    shape_.vocab_size = 6;
  }
  void Write(const std::string& name, const std::string& content) {
    temporary_.Write(name, content);
  }

  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  ModelShape shape_;
};

TEST_F(MakeTokenizerTest, WithoutConfigTextIsLowered) {
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nA\n");
  const auto tokenizer = MakeTokenizer(folder_, shape_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("A", std::nullopt, 8).ids, (std::vector<int32_t>{2, 4, 3}));
  EXPECT_EQ((*tokenizer)->vocab_size(), 6);
  EXPECT_EQ((*tokenizer)->pad_id(), 0);
}

TEST_F(MakeTokenizerTest, ConfigDecidesCasing) {
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nA\n");
  Write("tokenizer_config.json", R"({"do_lower_case": false})");
  const auto tokenizer = MakeTokenizer(folder_, shape_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("A", std::nullopt, 8).ids, (std::vector<int32_t>{2, 5, 3}));
}

TEST_F(MakeTokenizerTest, TokensAreAddedAfterThoseOfTheVocabulary) {
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
  const std::string without = (*MakeTokenizer(folder_, shape_))->digest();
  Write("added_tokens.json", R"({"[E1]": 6, "[E2]": 7, "[CLS]": 2})");
  const auto refused = MakeTokenizer(folder_, shape_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.status().message()),
      HasSubstr("vocab.txt:6: expected 6 tokens (the model's vocab_size), got 6 and 2 added "
                "ones; take the vocabulary that belongs to the model, or resize"));
  shape_.vocab_size = 8;
  const auto tokenizer = MakeTokenizer(folder_, shape_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("a [E2]b", std::nullopt, 8).ids,
            (std::vector<int32_t>{2, 4, 7, 5, 3}));
  EXPECT_EQ((*tokenizer)->vocab_size(), 8);
  EXPECT_NE((*tokenizer)->digest(), without);
}

TEST_F(MakeTokenizerTest, MissingVocabularyIsNamed) {
  const auto tokenizer = MakeTokenizer(folder_, shape_);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(folder_ + "/vocab.txt"));
}

TEST_F(MakeTokenizerTest, BrokenConfigIsNamed) {
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nA\n");
  Write("tokenizer_config.json", "{");
  const auto tokenizer = MakeTokenizer(folder_, shape_);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("tokenizer_config.json"));
}

TEST_F(MakeTokenizerTest, AnotherModelsVocabularyIsRefused) {
  shape_.vocab_size = 30522;
  const auto tokenizer = MakeTokenizer(GoldenTokenizersPath("bert-base-cased"), shape_);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr("bert-base-cased/vocab.txt:28996: expected 30522 tokens"));
}

TEST_F(MakeTokenizerTest, FamiliesWithoutATokenizerAreNamed) {
  for (const char* family : {"mamba", "t5", ""}) {
    SCOPED_TRACE(family);
    shape_.family = family;
    const auto tokenizer = MakeTokenizer(folder_, shape_);
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(tokenizer.status().message()),
                HasSubstr(std::string("got '") + family + "'"));
  }
}

TEST_F(MakeTokenizerTest, TokenizerClassBeatsModelType) {
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nA\n");
  Write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizerFast"})");
  shape_.family = "roberta";
  const auto tokenizer = MakeTokenizer(folder_, shape_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("A", std::nullopt, 8).ids, (std::vector<int32_t>{2, 4, 3}));
}

TEST(MakeTokenizerOfFolder, TellsFamiliesByTheirFiles) {
  // Copies of the vocabularies alone: the files' names decide.
  const std::tuple<const char*, const char*, std::vector<int32_t>> cases[] = {
      {"bert-base-cased", "vocab.txt", {101, 102, 102}},
      {"deberta-like", "spm.model", {1, 2, 2}},
      {"xlmr-like", "sentencepiece.bpe.model", {0, 2, 2, 2}},
      {"llama-like", "tokenizer.model", {1, 1}},
      {"xlnet-excerpt", "spiece.model", {}},
      {"suffix-like", "any.model", {}},
  };
  for (const auto& [name, file, ids] : cases) {
    SCOPED_TRACE(name);
    TemporaryFolder folder;
    folder.Write(file, *ReadFile(GoldenTokenizersPath(absl::StrCat(name, "/", file))));
    const auto tokenizer = MakeTokenizerOfFolder(folder.path());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->Encode("", "", kNoTruncation).ids, ids);
  }
}

TEST(MakeTokenizerOfFolder, TellsRobertaFromGpt2ByItsSpecialTokens) {
  for (const auto& [name, size] : {std::pair("roberta-excerpt", 4), std::pair("gpt2-like", 0)}) {
    SCOPED_TRACE(name);
    TemporaryFolder folder;
    for (const char* file : {"vocab.json", "merges.txt"}) {
      folder.Write(file, *ReadFile(GoldenTokenizersPath(absl::StrCat(name, "/", file))));
    }
    const auto tokenizer = MakeTokenizerOfFolder(folder.path());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->Encode("", "", kNoTruncation).ids.size(), size);
  }
}

TEST(MakeTokenizerOfFolder, NamesWhatIsMissingOrUnknown) {
  TemporaryFolder folder;
  auto tokenizer = MakeTokenizerOfFolder(folder.path());
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr("expected tokenizer.json, vocab.txt, vocab.json and merges.txt, or one "
                        "*.model, got none of them"));
  folder.Write("spiece.model", "");
  folder.Write("tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  tokenizer = MakeTokenizerOfFolder(folder.path());
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("got 'XLNetTokenizer'"));
}

// Where the two texts lie in every family, whatever stands around them, and what is cut off.
TEST(Encode, TellsWhereTheTextsAre) {
  const char* const first = "which aspects ?";
  const char* const second = "the wine was good .";
  for (const char* family : {"json-bert", "json-roberta", "json-deberta", "json-llama3"}) {
    SCOPED_TRACE(family);
    const auto tokenizer = GoldenTokenizer(family);
    ASSERT_NE(tokenizer, nullptr);
    const auto pieces_of = [&](const char* text) {
      const Encoding alone = tokenizer->Encode(text, std::nullopt, kNoTruncation);
      EXPECT_EQ(alone.pair, TokenRange{});
      EXPECT_EQ(alone.text.end - alone.text.begin + tokenizer->NumSpecialTokens(false),
                static_cast<int64_t>(alone.ids.size()));
      return std::vector<int32_t>(alone.ids.begin() + alone.text.begin,
                                  alone.ids.begin() + alone.text.end);
    };
    const auto texts = {std::pair{pieces_of(first), &Encoding::text},
                        std::pair{pieces_of(second), &Encoding::pair}};
    for (const int64_t max_length : {kNoTruncation, int64_t{10}}) {
      const Encoding both = tokenizer->Encode(first, second, max_length);
      int64_t kept = 0;
      for (const auto& [pieces, place] : texts) {
        const TokenRange range = both.*place;
        ASSERT_LE(range.end, static_cast<int64_t>(both.ids.size()));
        EXPECT_TRUE(std::equal(both.ids.begin() + range.begin, both.ids.begin() + range.end,
                               pieces.begin()));
        kept += range.end - range.begin;
      }
      EXPECT_EQ(kept + tokenizer->NumSpecialTokens(true), static_cast<int64_t>(both.ids.size()));
    }
  }
}

}  // namespace
}  // namespace hpo::text
