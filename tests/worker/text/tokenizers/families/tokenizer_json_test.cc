#include "worker/text/tokenizers/families/tokenizer_json.h"

#include <string>
#include <utility>
#include <vector>

#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/text/golden_tokenizers.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TokenizerJsonGolden, AgreesWithHuggingFaceOnHardUnicode) {
  EXPECT_EQ(ExpectVectors("vectors_tokenizer_json.jsonl"), 927);
}

absl::StatusOr<std::unique_ptr<PipelineTokenizer>> Parse(const nlohmann::json& json,
                                                         const TokenizerConfig& config = {}) {
  return ParseTokenizerJson(json.dump(), "m/tokenizer.json", config, /*model_rows=*/0);
}

nlohmann::json SmallJson() {
  return nlohmann::json::parse(R"({
    "added_tokens": [{"id": 0, "content": "[UNK]", "special": true},
                     {"id": 9, "content": "<new>", "normalized": false}],
    "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": null,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 5, "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "b": 3}}})");
}

TEST(TokenizerJson, IsMadeOfItsParts) {
  const auto tokenizer = Parse(SmallJson());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT((*tokenizer)->Pieces("AB b<new>c abbbbb [UNK]"), ElementsAre(1, 2, 3, 9, 0, 0, 0));
  EXPECT_EQ((*tokenizer)->vocab_size(), 10);
  const Encoding encoding = (*tokenizer)->Encode("a", "b", kNoTruncation);
  EXPECT_THAT(encoding.ids, ElementsAre(1, 3));
  EXPECT_THAT(encoding.type_ids, ElementsAre(0, 1));
}

TEST(TokenizerJson, KnowsModelsWithoutType) {
  nlohmann::json json = SmallJson();
  json["model"].erase("type");
  EXPECT_THAT((*Parse(json))->Pieces("ab"), ElementsAre(1, 2));
  json["model"] = {{"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}};
  EXPECT_THAT((*Parse(json))->Pieces("abb"), ElementsAre(2, 1));
  json["model"] = nlohmann::json::parse(R"({"vocab":[["?",0],["a",-1],["ab",-2]],"unk_id":0})");
  EXPECT_THAT((*Parse(json))->Pieces("aba"), ElementsAre(2, 1));
}

TEST(TokenizerJson, TokensOfTheVocabularyKeepTheirId) {
  nlohmann::json json = SmallJson();
  json["added_tokens"].push_back({{"id", 12}, {"content", "b"}});
  EXPECT_THAT((*Parse(json))->Pieces("xb"), ElementsAre(0, 3));
}

TEST(TokenizerJson, PaddingIsNamedOrKnown) {
  nlohmann::json json = SmallJson();
  EXPECT_EQ((*Parse(json))->pad_id(), 0);
  json["padding"] = {{"pad_id", 3}};
  EXPECT_EQ((*Parse(json))->pad_id(), 3);
  json["model"]["vocab"]["[PAD]"] = 4;
  EXPECT_EQ((*Parse(json))->pad_id(), 4);
  EXPECT_EQ((*Parse(json, {.special_tokens = {{"pad_token", "<new>"}}}))->pad_id(), 9);
}

TEST(TokenizerJson, DigestTellsContentsApart) {
  nlohmann::json json = SmallJson();
  const std::string digest = (*Parse(json))->digest();
  EXPECT_EQ(digest, (*Parse(json))->digest());
  json["normalizer"] = nullptr;
  EXPECT_NE(digest, (*Parse(json))->digest());
}

TEST(TokenizerJson, RowsOfTheModelAreAtLeastTheTokens) {
  const std::string content = SmallJson().dump();
  EXPECT_TRUE(ParseTokenizerJson(content, "t", {}, 10).ok());
  const auto tokenizer = ParseTokenizerJson(content, "m/tokenizer.json", {}, 9);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokenizer.status().message()),
              HasSubstr("m/tokenizer.json: expected 9 tokens (the model's vocab_size), got 10"));
}

// A change of the small file, as a JSON patch's path and value, and what the error must say.
struct Fault {
  const char* path;
  const char* value;
  const char* expected;
};

void ExpectFaults(const std::vector<Fault>& faults, absl::StatusCode code) {
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.expected);
    nlohmann::json json = SmallJson();
    json[nlohmann::json::json_pointer(fault.path)] = nlohmann::json::parse(fault.value);
    const auto tokenizer = Parse(json);
    EXPECT_EQ(tokenizer.status().code(), code) << tokenizer.status();
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(fault.expected));
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("m/tokenizer.json: "));
  }
}

TEST(TokenizerJson, NamesWhatIsWrong) {
  ExpectFaults(
      {{"/model", "null", "model: expected an object, got null"},
       {"/model/vocab", "[]", "model.vocab: expected an object of tokens and ids"},
       {"/model/vocab/a", "\"1\"", "model.vocab: 'a': expected an id below"},
       {"/model/unk_token", "\"?\"", "model.unk_token: expected a token of the vocabulary"},
       {"/model/unk_token", "null", "model.unk_token: expected a token of the vocabulary"},
       {"/model/max_input_chars_per_word", "-1", "expected 0 or more, got the integer -1"},
       {"/model", R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})",
        "model.merges[0]: expected two tokens"},
       {"/model", R"({"type":"BPE","vocab":{"a":0},"merges":[["a","b"]]})",
        "model.merges: merge 1: expected 'a', 'b'"},
       {"/model", R"({"type":"Unigram","vocab":[["a"]],"unk_id":0})",
        "model.vocab[0]: expected a piece and its score"},
       {"/model", R"({"type":"Unigram","vocab":[["a",0]],"unk_id":1})",
        "model.unk_id: expected an id below 1, got the integer 1"},
       {"/normalizer", "[]", "normalizer: expected an object, got an array"},
       {"/normalizer", R"({"type":"Sequence"})", "normalizer.normalizers: expected an array"},
       {"/normalizer", R"({"type":"Sequence","normalizers":[{"type":"Replace","content":"x"}]})",
        "normalizer.normalizers[0].pattern: expected an object with String or Regex"},
       {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"!"})", "expected base64"},
       {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})",
        "normalizer.precompiled_charsmap: byte 0: expected a size of 4 bytes, got 3"},
       {"/pre_tokenizer", R"({"type":"Metaspace","replacement":""})",
        "pre_tokenizer.replacement: expected a character"},
       {"/added_tokens", "{}", "added_tokens: expected an array, got an object"},
       {"/added_tokens/1/id", "-1", "added_tokens[1].id: expected 0 to 2097151, got -1"},
       {"/added_tokens/0/content", "3", "added_tokens[0].content: expected a string"},
       {"/post_processor", R"({"type":"TemplateProcessing","single":[],"pair":[]})",
        "post_processor: expected A once in single, A and B once in pair"},
       {"/post_processor",
        R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x","type_id":0}}]})",
        "post_processor.single: expected ids for x in special_tokens, got null"},
       {"/post_processor", R"({"type":"BertProcessing","cls":["[CLS]",1]})",
        "post_processor.sep: expected a token and its id, got null"}},
      absl::StatusCode::kInvalidArgument);
}

TEST(TokenizerJson, SaysWhichPartItLacks) {
  ExpectFaults(
      {{"/normalizer", R"({"type":"Nmt"})", "normalizer: expected a normalizer, got 'Nmt'"},
       {"/normalizer", R"({"type":"Replace","pattern":{"Regex":"(a|b)+"},"content":""})",
        "normalizer: expected a regular expression, got '(a|b)+'"},
       {"/normalizer", R"({"type":"BertNormalizer","clean_text":false})", "clean_text"},
       {"/pre_tokenizer", R"({"type":"UnicodeScripts"})", "got 'UnicodeScripts'"},
       {"/pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"\\d"},"behavior":"Isolated"})",
        "pre_tokenizer: expected a regular expression, got '\\d'"},
       {"/pre_tokenizer", R"({"type":"ByteLevel"})", "model: expected BPE after ByteLevel"},
       {"/pre_tokenizer",
        R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Whitespace"}]})",
        "pre_tokenizer.pretokenizers[1]: expected nothing after ByteLevel, got"},
       {"/pre_tokenizer",
        R"({"type":"Sequence","pretokenizers":[{"type":"Sequence","pretokenizers":[]}]})",
        "pre_tokenizer.pretokenizers[0]: expected a pre-tokenizer, got 'Sequence'"},
       {"/model/type", "\"WordLevel\"", "model: expected a model, got 'WordLevel'"},
       {"/model", R"({"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1})", "model.dropout"},
       {"/model", R"({"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"</w>"})",
        "model.end_of_word_suffix"},
       {"/post_processor", R"({"type":"Other"})",
        "post_processor: expected a post-processor, got 'Other'"},
       {"/post_processor",
        R"({"type":"Sequence","processors":[{"type":"BertProcessing"},{"type":"BertProcessing"}]})",
        "expected one post-processor that adds tokens"}},
      absl::StatusCode::kUnimplemented);
}

TEST(TokenizerJson, BrokenFilesAreNamed) {
  for (const auto& [content, expected] :
       {std::pair("{", "m/tokenizer.json: expected JSON, got something else at byte 2"),
        std::pair("[]", "m/tokenizer.json: expected an object, got an array"),
        std::pair("{\"model\": \"\xFF\"}", "m/tokenizer.json: expected JSON")}) {
    const auto tokenizer = ParseTokenizerJson(content, "m/tokenizer.json", {}, 0);
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace hpo::text
