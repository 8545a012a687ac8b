#include "worker/trainer/scores/span_scores.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Asks = text::TextQuestion::Asks;

// For each token whether a span begins there, ends there, both (x) or neither.
std::vector<float> Logits(const std::string& marks) {
  std::vector<float> logits;
  for (const char mark : marks) {
    logits.push_back(mark == 'b' || mark == 'x' ? 0.5f : -0.5f);
    logits.push_back(mark == 'e' || mark == 'x' ? 0.5f : 0.0f);
  }
  return logits;
}

std::vector<text::TokenRange> Spans(const std::string& marks, const text::TokenRange& text) {
  return SpansIn(Logits(marks), text);
}

TEST(SpansIn, GoFromABeginningToTheNextEnd) {
  EXPECT_THAT(Spans("..be.x.b..e.", {0, 12}),
              ElementsAre(text::TokenRange{2, 4}, text::TokenRange{5, 6}, text::TokenRange{7, 11}));
}

TEST(SpansIn, WhatDoesNotEndOrDoesNotBeginIsNone) {
  EXPECT_THAT(Spans("e.b", {0, 3}), IsEmpty());
  // The later beginning is nearer to the end; the second end has no beginning.
  EXPECT_THAT(Spans("b.b.e.e", {0, 7}), ElementsAre(text::TokenRange{2, 5}));
  EXPECT_THAT(Spans("be", {0, 0}), IsEmpty());
}

TEST(SpansIn, LieInTheText) {
  EXPECT_THAT(Spans("xxbex", {1, 4}), ElementsAre(text::TokenRange{1, 2}, text::TokenRange{2, 4}));
  EXPECT_THAT(Spans("b.e", {1, 3}), IsEmpty());
}

TEST(SpanProbability, IsThatItBeginsAndThatItEnds) {
  const std::vector<float> logits = {0.0f, 9.0f, 1.0f, -9.0f, -9.0f, 2.0f};
  const double begins = 1.0 / (1.0 + std::exp(-1.0));
  const double ends = 1.0 / (1.0 + std::exp(-2.0));
  EXPECT_DOUBLE_EQ(SpanProbability(logits, {1, 3}), begins * ends);
}

Metrics Score(const SpanScores& scores) {
  Metrics metrics;
  scores.Summarize(metrics);
  return metrics;
}

text::SpanQuery Query(Asks asks, std::vector<text::AnswerSpan> answers) {
  return {.asks = asks, .text = {0, 8}, .answers = std::move(answers)};
}

TEST(SpanScores, CountsExactMatches) {
  const text::SpanQuery query =
      Query(Asks::kAspects, {{.tokens = {0, 1}, .phrase = 0}, {.tokens = {3, 5}, .phrase = 1}});
  SpanScores scores;
  scores.AddRow(query, Logits("x..be..."));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 1.0);
  // One is too long: neither found, and wrong.
  scores.AddRow(query, Logits("x..b.e.."));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 2.0 * 3 / (2 * 3 + 1 + 1));
  EXPECT_DOUBLE_EQ(Score(scores).at("opinion_f1"), 0.0);
}

TEST(SpanScores, AspectsAndOpinionsCountApart) {
  const std::vector<text::AnswerSpan> first = {{.tokens = {0, 1}, .phrase = 0}};
  SpanScores scores;
  scores.AddRow(Query(Asks::kAspects, first), Logits("x......."));
  scores.AddRow(Query(Asks::kOpinions, first), Logits("xx......"));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 1.0);
  EXPECT_DOUBLE_EQ(Score(scores).at("opinion_f1"), 2.0 / 3);
  scores.AddRow(Query(Asks::kClass, {}), Logits("xxxxxxxx"));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 1.0);
}

// Where a phrase occurs twice, the data do not say which is meant.
TEST(SpanScores, APhraseIsFoundOnceWhereverItIs) {
  const text::SpanQuery twice =
      Query(Asks::kOpinions, {{.tokens = {0, 1}, .phrase = 0}, {.tokens = {4, 5}, .phrase = 0}});
  for (const char* marks : {"x.......", "....x...", "x...x..."}) {
    SpanScores scores;
    scores.AddRow(twice, Logits(marks));
    EXPECT_DOUBLE_EQ(Score(scores).at("opinion_f1"), 1.0) << marks;
  }
}

TEST(SpanScores, WhatIsCutOffIsMissedAndWhatIsMadeUpIsWrong) {
  SpanScores scores;
  scores.AddRow(Query(Asks::kAspects, {{.tokens = {9, 10}, .phrase = 0}}), Logits("........"));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 0.0);
  scores.AddRow(Query(Asks::kAspects, {{.tokens = {1, 2}, .phrase = 0}}), Logits(".x......"));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 2.0 / 3);
  scores.AddRow(Query(Asks::kAspects, {}), Logits("x......."));
  EXPECT_DOUBLE_EQ(Score(scores).at("aspect_f1"), 2.0 / 4);
}

TEST(SpanScores, NothingToFindAndNothingSaidIsZero) {
  SpanScores scores;
  scores.AddRow(Query(Asks::kOpinions, {}), Logits("........"));
  EXPECT_DOUBLE_EQ(Score(scores).at("opinion_f1"), 0.0);
}

}  // namespace
}  // namespace hpo::trainer
