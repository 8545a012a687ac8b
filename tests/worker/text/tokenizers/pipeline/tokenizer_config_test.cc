#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TokenizerConfig, ReadsWhatIsThere) {
  const auto config = ParseTokenizerConfig(R"({
    "tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": true, "add_bos_token": false,
    "strip_accents": null, "model_max_length": 512, "pad_token": "<p>",
    "mask_token": {"content": "<m>", "lstrip": true},
    "added_tokens_decoder": {"11": {"content": "<b>", "special": true, "normalized": false},
                             "9": {"content": "<a>", "rstrip": true}}})",
                                           "tokenizer_config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tokenizer_class, "RobertaTokenizer");
  EXPECT_EQ(config->add_prefix_space, true);
  EXPECT_EQ(config->add_bos_token, false);
  EXPECT_EQ(config->strip_accents, std::nullopt);
  EXPECT_EQ(config->SpecialToken("pad_token", "<pad>"), "<p>");
  EXPECT_EQ(config->SpecialToken("mask_token", "<mask>"), "<m>");
  EXPECT_EQ(config->SpecialToken("eos_token", "</s>"), "</s>");
  EXPECT_THAT(config->added_tokens,
              ElementsAre(AddedToken{.content = "<a>", .id = 9, .rstrip = true},
                          AddedToken{.content = "<b>", .id = 11, .special = true}));
}

TEST(TokenizerConfig, AddedTokensFileGivesIdsOfTokensNotYetKnown) {
  TemporaryFolder folder;
  folder.Write("tokenizer_config.json",
               R"({"added_tokens_decoder": {"5": {"content": "<a>", "lstrip": true}}})");
  folder.Write("added_tokens.json", R"({"<a>": 5, "<b>": 6})");
  const auto config = ReadTokenizerConfig(folder.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->added_tokens,
              ElementsAre(AddedToken{.content = "<a>", .id = 5, .lstrip = true},
                          AddedToken{.content = "<b>", .id = 6, .special = true}));
}

TEST(TokenizerConfig, WithoutFilesSaysNothing) {
  TemporaryFolder folder;
  const auto config = ReadTokenizerConfig(folder.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tokenizer_class, "");
  EXPECT_TRUE(config->added_tokens.empty());
}

TEST(TokenizerConfig, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected JSON, got something else at byte 1"},
      {"[]", "expected a JSON object, got an array"},
      {"{\"do_lower_case\":", "expected JSON, got something else at byte 18"},
      {R"({"do_lower_case":"yes"})",
       "do_lower_case: expected true or false, got the string \"yes\""},
      {R"({"tokenize_chinese_chars":1})",
       "tokenize_chinese_chars: expected true or false, got the integer 1"},
      {R"({"pad_token":3})", "pad_token: expected a string or an object with content"},
      {R"({"tokenizer_class":3})", "tokenizer_class: expected a string"},
      {R"({"added_tokens_decoder":[]})", "added_tokens_decoder: expected an object, got an array"},
      {R"({"added_tokens_decoder":{"x":{"content":"a"}}})", "expected ids from 0 to 2097151"},
      {R"({"added_tokens_decoder":{"1":{}}})", "added_tokens_decoder.1.content: missing"},
      {R"({"added_tokens_decoder":{"1":{"content":""}}})",
       "added_tokens_decoder.1: expected a token"},
  };
  for (const auto& [json, expected] : cases) {
    SCOPED_TRACE(json);
    const auto parsed = ParseTokenizerConfig(json, "m/tokenizer_config.json");
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(expected));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("m/tokenizer_config.json"));
  }
}

}  // namespace
}  // namespace hpo::text
