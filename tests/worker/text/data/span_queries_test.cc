#include "worker/text/data/span_queries.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Asks = TextQuestion::Asks;

// Questions are unknown words but for their names: "which aspects ?" has 3 tokens.
const Tokenizer& Words() {
  static const auto* const tokenizer = new std::unique_ptr<PipelineTokenizer>(
      MakeBertTokenizer({.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "wine", "bar", "##man",
                                    "good", "not", "was", ","},
                         .digest = "words"},
                        {}));
  return **tokenizer;
}

AspectFile SpanFile(const std::string& text,
                    const std::vector<std::pair<std::string, std::string>>& pairs) {
  AspectRow row{.text = text, .line = 1};
  for (const auto& [name, opinion] : pairs) {
    row.aspects.push_back({.name = name, .opinion = opinion, .question = name});
  }
  return {.path = "a.jsonl", .rows = {row}};
}

SpanQueries Spans(const AspectFile& file, int64_t max_length = 64) {
  auto spans = FindSpans(file, Words(), max_length);
  EXPECT_TRUE(spans.ok()) << spans.status();
  return *std::move(spans);
}

TEST(FindSpans, PlacesAnswersAmongTheTokensOfTheirRow) {
  // [CLS] which aspects ? [SEP] wine was not good , bar ##man good [SEP]
  const SpanQueries spans = Spans(
      SpanFile("wine was not good , barman good", {{"wine", "not good"}, {"barman", "good"}}));
  ASSERT_EQ(spans.queries.size(), 2u + 2 + 2 + 2);
  EXPECT_EQ(
      spans.queries[0],
      (SpanQuery{.asks = Asks::kAspects,
                 .text = {5, 13},
                 .answers = {{.tokens = {5, 6}, .phrase = 0}, {.tokens = {10, 12}, .phrase = 1}}}));
  // which opinions of wine ?
  EXPECT_EQ(spans.queries[1], (SpanQuery{.asks = Asks::kOpinions,
                                         .text = {7, 15},
                                         .answers = {{.tokens = {9, 11}, .phrase = 0}}}));
  // which opinions of bar ##man ? - "good" occurs twice: each place is one of the same answer.
  EXPECT_THAT(spans.queries[2].answers, ElementsAre(AnswerSpan{.tokens = {11, 12}, .phrase = 0},
                                                    AnswerSpan{.tokens = {15, 16}, .phrase = 0}));
  EXPECT_EQ(spans.queries[3].answers.size(), 3u);
  EXPECT_EQ(spans.queries[6], SpanQuery{});
  EXPECT_EQ(spans.phrases, 4);
  EXPECT_EQ(spans.unplaced, 0);
}

TEST(FindSpans, WhatDoesNotOccurHasNoPlaceAndIsCounted) {
  const SpanQueries spans =
      Spans(SpanFile("wine was good", {{"wine", "good"}, {"menu", ""}, {"", "Good"}}));
  EXPECT_THAT(spans.queries[0].answers, ElementsAre(AnswerSpan{.tokens = {5, 6}, .phrase = 0}));
  // which opinions of menu ?
  EXPECT_THAT(spans.queries[2].answers, IsEmpty());
  EXPECT_EQ(spans.phrases, 4);
  EXPECT_EQ(spans.unplaced, 2);
}

// The text's tokens end where it is cut off; answers stay where they are.
TEST(FindSpans, TellsHowMuchOfATextIsKept) {
  const AspectFile file = SpanFile("wine was not good , bar", {{"wine", "good"}, {"bar", ""}});
  const SpanQueries spans = Spans(file, /*max_length=*/9);
  // [CLS] which aspects ? [SEP] wine was not [SEP]
  EXPECT_EQ(spans.queries[0].text, (TokenRange{5, 8}));
  EXPECT_THAT(spans.queries[0].answers, ElementsAre(AnswerSpan{.tokens = {5, 6}, .phrase = 0},
                                                    AnswerSpan{.tokens = {10, 11}, .phrase = 1}));
}

TEST(FindSpans, AFileInWhichNothingOccursIsRefused) {
  const absl::Status no_aspect =
      FindSpans(SpanFile("wine was good", {{"Wine", "good"}}), Words(), 64).status();
  EXPECT_EQ(no_aspect.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(no_aspect.message()),
              HasSubstr("a.jsonl: Aspect: expected at least one that occurs in its Text"));
  EXPECT_THAT(
      std::string(FindSpans(SpanFile("wine", {{"wine", ""}}), Words(), 64).status().message()),
      HasSubstr("a.jsonl: Opinion: expected at least one that occurs in its Text"));
}

}  // namespace
}  // namespace hpo::text
