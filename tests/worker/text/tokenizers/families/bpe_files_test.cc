#include "worker/text/tokenizers/families/bpe_files.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(TokenIds, GiveTokensByIdWithHoles) {
  const auto ids = TokenIdsFromJson({{"a", 0}, {"b", 3}}, "vocab.json");
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_THAT(TokensById(*ids), ElementsAre("a", "", "", "b"));
  EXPECT_EQ(IdOf(*ids, "b"), 3);
  EXPECT_EQ(IdOf(*ids, "c"), -1);
}

TEST(TokenIds, NameWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "m/vocab.json: expected an object of tokens and ids, got an array"},
      {"{}", "m/vocab.json: expected an object of tokens and ids, got an empty one"},
      {R"({"a":-1})", "'a': expected an id below 2097152"},
      {R"({"a":2097152})", "got the integer 2097152"},
      {R"({"a":1e9})", "got the number"},
      {R"({"a":"1"})", "got the string \"1\""},
      {R"({"a":1,"b":1})", "that no other token has, got the integer 1"},
  };
  for (const auto& [json, expected] : cases) {
    SCOPED_TRACE(json);
    const auto ids = TokenIdsFromJson(nlohmann::json::parse(json), "m/vocab.json");
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(ids.status().message()), HasSubstr(expected));
  }
}

TEST(ParseMerges, SkipsTheVersionAndTakesEitherLineEnd) {
  const auto merges = ParseMerges("#version: 0.2\na b\r\n\u0120 #\n# #\n\n", "merges.txt");
  ASSERT_TRUE(merges.ok()) << merges.status();
  EXPECT_THAT(*merges, ElementsAre(Pair("a", "b"), Pair("\u0120", "#"), Pair("#", "#")));
  EXPECT_TRUE(ParseMerges("", "merges.txt")->empty());
}

TEST(ParseMerges, NamesTheLine) {
  for (const char* line : {"ab", "a b c", " b", "a ", "", "a \xFF"}) {
    SCOPED_TRACE(line);
    const auto merges =
        ParseMerges(std::string("#version: 0.2\na b\n") + line + "\nc d\n", "m/merges.txt");
    EXPECT_EQ(merges.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(merges.status().message()),
                HasSubstr("m/merges.txt:3: expected two tokens"));
  }
}

TEST(MakeBpeVocabulary, WritesTokensAsBytes) {
  const TokenIds ids = {{"\u0120", 0}, {"a", 1}, {"\u0120a", 2}, {"<\u751F>", 3}};
  const auto vocabulary =
      MakeBpeVocabulary(ids, {{"\u0120", "a"}}, BpeVocabulary::Unit::kByte, "merges.txt");
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(vocabulary->tokens, ElementsAre(" ", "a", " a", ""));
  ASSERT_EQ(vocabulary->merges.size(), 1);
  EXPECT_EQ(vocabulary->merges[0].merged, 2);
}

TEST(MakeBpeVocabulary, MergesMustBeOfTokens) {
  const TokenIds ids = {{"a", 0}, {"b", 1}, {"ab", 2}};
  for (const auto& merge : NamedMerges{{"a", "c"}, {"c", "b"}, {"b", "a"}}) {
    const auto vocabulary = MakeBpeVocabulary(ids, {{"a", "b"}, merge},
                                              BpeVocabulary::Unit::kCharacter, "m/merges.txt");
    EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(vocabulary.status().message()),
                HasSubstr("m/merges.txt: merge 2: expected '" + merge.first + "'"));
  }
}

}  // namespace
}  // namespace hpo::text
