#include "worker/text/tokenizers/families/tokenizer_json_parts.h"

#include <string>
#include <vector>

#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/tokenizers/families/sentencepiece_model.h"
#include "worker/text/tokenizers/families/tokenizer_json_model.h"
#include "worker/text/tokenizers/families/tokenizer_json_splits.h"
#include "worker/text/tokenizers/parts/byte_alphabet.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;

// The file's first row has the texts, each other what a part makes of them.
class PartsGolden : public testing::Test {
 protected:
  PartsGolden() : rows_(GoldenVectors("vectors_tokenizer_json_parts.jsonl")) {
    texts_ = rows_.front().at("texts").get<std::vector<std::string>>();
  }

  std::vector<nlohmann::json> rows_;
  std::vector<std::string> texts_;
};

TEST_F(PartsGolden, NormalizersAgreeWithHuggingFace) {
  int parts = 0;
  for (const nlohmann::json& row : rows_) {
    if (!row.contains("normalizer")) continue;
    ++parts;
    SCOPED_TRACE(row.at("normalizer").dump().substr(0, 200));
    std::vector<NormalizerStep> steps;
    const absl::Status read = ReadNormalizer(row.at("normalizer"), "normalizer", steps);
    ASSERT_TRUE(read.ok()) << read;
    for (size_t i = 0; i < texts_.size(); ++i) {
      EXPECT_EQ(Normalize(steps, texts_[i]), row.at("normalized")[i].get<std::string>())
          << "of '" << texts_[i] << "'";
    }
  }
  EXPECT_EQ(parts, 18);
}

std::vector<std::string> WordsOf(const PreTokenizer& pre_tokenizer, const std::string& text) {
  std::vector<std::string> words;
  SplitWords(pre_tokenizer.steps, text, /*at_start=*/true, [&](absl::string_view word) {
    words.push_back(pre_tokenizer.byte_level ? TokenOfBytes(word) : std::string(word));
  });
  return words;
}

TEST_F(PartsGolden, PreTokenizersAgreeWithHuggingFace) {
  int parts = 0;
  for (const nlohmann::json& row : rows_) {
    if (!row.contains("pre_tokenizer")) continue;
    ++parts;
    SCOPED_TRACE(row.at("pre_tokenizer").dump());
    const auto pre_tokenizer = ReadPreTokenizer(row.at("pre_tokenizer"), "pre_tokenizer");
    ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
    for (size_t i = 0; i < texts_.size(); ++i) {
      EXPECT_EQ(WordsOf(*pre_tokenizer, texts_[i]),
                row.at("words")[i].get<std::vector<std::string>>())
          << "of '" << texts_[i] << "'";
    }
  }
  EXPECT_EQ(parts, 27);
}

// All of NFKC as rules, over text of every script.
TEST_F(PartsGolden, RewritingRulesAgreeWithHuggingFace) {
  const nlohmann::json& row = rows_.back();
  const std::string path = GoldenTokenizersPath(row.at("charsmap"));
  const auto model = ParseSentencePieceModel(*ReadFile(path), path);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto rules = Charsmap::Parse(model->precompiled_charsmap);
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(row.at("texts").size(), 150);
  for (size_t i = 0; i < row.at("texts").size(); ++i) {
    const std::string text = row.at("texts")[i];
    EXPECT_EQ(rules->RewriteGraphemes(text), row.at("normalized")[i].get<std::string>())
        << "of '" << text << "'";
  }
}

TEST(PostProcessor, TemplatesAreWhatTheyAddAround) {
  using Kind = TemplatePiece::Kind;
  const auto read = [](const char* json) {
    const auto templates = ReadPostProcessor(nlohmann::json::parse(json), "post_processor");
    EXPECT_TRUE(templates.ok()) << templates.status();
    return *templates;
  };
  const Templates bert = read(R"({"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]})");
  EXPECT_THAT(bert.single,
              ElementsAre(TemplatePiece{Kind::kToken, 0, 2}, TemplatePiece{Kind::kText},
                          TemplatePiece{Kind::kToken, 0, 3}));
  EXPECT_THAT(bert.pair,
              ElementsAre(TemplatePiece{Kind::kToken, 0, 2}, TemplatePiece{Kind::kText},
                          TemplatePiece{Kind::kToken, 0, 3}, TemplatePiece{Kind::kPair, 1},
                          TemplatePiece{Kind::kToken, 1, 3}));
  const Templates roberta =
      read(R"({"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0],"trim_offsets":true})");
  EXPECT_THAT(roberta.pair,
              ElementsAre(TemplatePiece{Kind::kToken, 0, 0}, TemplatePiece{Kind::kText},
                          TemplatePiece{Kind::kToken, 0, 2}, TemplatePiece{Kind::kToken, 0, 2},
                          TemplatePiece{Kind::kPair, 0}, TemplatePiece{Kind::kToken, 0, 2}));
  const Templates several = read(R"({"type":"Sequence","processors":[{"type":"ByteLevel"},
    {"type":"TemplateProcessing",
     "single":[{"SpecialToken":{"id":"x","type_id":2}},{"Sequence":{"id":"A","type_id":1}}],
     "pair":[{"Sequence":{"id":"B","type_id":1}},{"Sequence":{"id":"A","type_id":0}}],
     "special_tokens":{"x":{"id":"x","ids":[7,8],"tokens":["x","y"]}}}]})");
  EXPECT_THAT(several.single,
              ElementsAre(TemplatePiece{Kind::kToken, 2, 7}, TemplatePiece{Kind::kToken, 2, 8},
                          TemplatePiece{Kind::kText, 1}));
  EXPECT_THAT(several.pair, ElementsAre(TemplatePiece{Kind::kPair, 1}, TemplatePiece{Kind::kText}));
  EXPECT_THAT(read(R"({"type":"ByteLevel"})").single, ElementsAre(TemplatePiece{Kind::kText}));
}

}  // namespace
}  // namespace hpo::text
