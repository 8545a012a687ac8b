#include "worker/text/batching/tokenize_lines.h"

#include <sstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/data/readers.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::text {
namespace {

using ::testing::HasSubstr;

// What the lines become, and how it ended.
std::pair<std::string, absl::Status> Tokenized(const std::string& lines) {
  const auto tokenizer = MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"}, .digest = "letters"}, {});
  std::istringstream in(lines);
  std::ostringstream out;
  absl::Status status = TokenizeLines(*tokenizer, in, out);
  return {out.str(), std::move(status)};
}

TEST(TokenizeLines, GivesALineForEachRow) {
  const auto [out, status] = Tokenized(
      "{\"text\":\"a\"}\n"
      "{\"text\":\"a b\",\"pair\":\"b\",\"label\":3}\r\n"
      "  \n"
      "{\"text\":\"\",\"pair\":null}\n"
      "{\"pair\":\"\",\"text\":\"\\u0000a\\n\"}");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(out,
            "{\"ids\":[2,4,3],\"type_ids\":[0,0,0]}\n"
            "{\"ids\":[2,4,5,3,5,3],\"type_ids\":[0,0,0,0,1,1]}\n"
            "{\"ids\":[2,3],\"type_ids\":[0,0]}\n"
            "{\"ids\":[2,4,3,3],\"type_ids\":[0,0,0,1]}\n");
}

TEST(TokenizeLines, WithoutLinesGivesNone) {
  const auto [out, status] = Tokenized("");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(out, "");
}

TEST(TokenizeLines, NamesTheBadLineAndKeepsWhatCameBefore) {
  const std::pair<std::string, const char*> cases[] = {
      {"{\"text\":", "standard input:3: expected JSON, got something else at byte 9"},
      {"[\"a\"]", "standard input:3: expected an object, got an array"},
      {"{}", "standard input:3: text: missing"},
      {"{\"text\":null}", "standard input:3: text: expected a string, got null"},
      {"{\"text\":3}", "standard input:3: text: expected a string, got the integer 3"},
      {"{\"text\":\"a\",\"pair\":[]}", "standard input:3: pair: expected a string, got an array"},
      {"{\"text\":\"\xFF\"}", "standard input:3: expected JSON"},
      {"{\"text\":\"\\ud800\"}", "standard input:3: expected JSON"},
      {std::string(kMaxRecordBytes + 1, 'x'), "standard input:3: expected at most 16777216 bytes"},
  };
  for (const auto& [line, expected] : cases) {
    SCOPED_TRACE(expected);
    const auto [out, status] = Tokenized("{\"text\":\"a\"}\n\n" + line + "\n{\"text\":\"b\"}\n");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected));
    EXPECT_EQ(out, "{\"ids\":[2,4,3],\"type_ids\":[0,0,0]}\n");
  }
}

TEST(TokenizeLines, FailedWritesAreSaid) {
  const auto tokenizer = GoldenTokenizer("gpt2-like");
  std::istringstream in("{\"text\":\"a\"}\n");
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(TokenizeLines(*tokenizer, in, out).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace hpo::text
