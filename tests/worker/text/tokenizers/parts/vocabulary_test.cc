#include "worker/text/tokenizers/parts/vocabulary.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSmall[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n";

TEST(Vocabulary, IdsAreLineNumbers) {
  const auto vocabulary = ParseVocabulary(kSmall, "vocab.txt", 5);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(vocabulary->tokens, ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"));
  EXPECT_EQ(vocabulary->IdOf("[SEP]"), 3);
  EXPECT_EQ(vocabulary->IdOf("b"), -1);
}

TEST(Vocabulary, LineEndingsDoNotMatterToTokens) {
  const auto crlf = ParseVocabulary("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na", "vocab.txt", 5);
  ASSERT_TRUE(crlf.ok()) << crlf.status();
  EXPECT_EQ(crlf->tokens, ParseVocabulary(kSmall, "vocab.txt", 5)->tokens);
}

TEST(Vocabulary, ModelsWithRowsRoundedUpForSpeedAreTaken) {
  EXPECT_TRUE(ParseVocabulary(kSmall, "vocab.txt", 8).ok());
  EXPECT_TRUE(ParseVocabulary(kSmall, "vocab.txt", 128).ok());
  EXPECT_FALSE(ParseVocabulary(kSmall, "vocab.txt", 7).ok());
  EXPECT_FALSE(ParseVocabulary(kSmall, "vocab.txt", 136).ok());
}

TEST(Vocabulary, ErrorsNameFileAndLine) {
  struct Case {
    std::string content;
    int64_t rows;
    const char* expected;
  };
  const Case cases[] = {
      {"", 5, "m/vocab.txt:1: expected a token, got an empty line"},
      {"[PAD]\n\n[UNK]\n", 3, "m/vocab.txt:2: expected a token, got an empty line"},
      {"[PAD]\na\nb\na\n", 4,
       "m/vocab.txt:4: expected distinct tokens, got 'a' again (first on line 2)"},
      {"[PAD]\n\xff\n", 2, "m/vocab.txt:2: expected UTF-8"},
      {"[PAD]\n[UNK]\n[CLS]\na\n", 4, "expected a line [SEP], got none"},
      {"[PAD]\n[CLS]\n[SEP]\na\n", 4, "expected a line [UNK], got none"},
      {kSmall, 4, "m/vocab.txt:5: expected 4 tokens (the model's vocab_size), got 5"},
      {kSmall, 30522, "m/vocab.txt:5: expected 30522 tokens (the model's vocab_size), got 5"},
  };
  for (const auto& [content, rows, expected] : cases) {
    SCOPED_TRACE(expected);
    const auto vocabulary = ParseVocabulary(content, "m/vocab.txt", rows);
    ASSERT_FALSE(vocabulary.ok());
    EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(vocabulary.status().message()), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace hpo::text
