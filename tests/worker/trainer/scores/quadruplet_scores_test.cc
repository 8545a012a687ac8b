#include "worker/trainer/scores/quadruplet_scores.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

text::Aspect Quadruplet(const char* aspect, const char* category, const char* opinion,
                        float valence = 5.0f, float arousal = 5.0f) {
  return {.name = aspect,
          .opinion = opinion,
          .question = {},
          .category = category,
          .valence = valence,
          .arousal = arousal};
}

Metrics Score(const std::vector<text::Aspect>& actual, const std::vector<text::Aspect>& said) {
  QuadrupletScores scores;
  scores.AddText(actual, said);
  Metrics metrics;
  scores.Summarize(metrics);
  return metrics;
}

TEST(QuadrupletScores, AllThreePartsHaveToMatch) {
  const std::vector<text::Aspect> actual = {Quadruplet("wine", "DRINKS", "good")};
  EXPECT_DOUBLE_EQ(Score(actual, actual).at("quadruplet_f1"), 1.0);
  EXPECT_DOUBLE_EQ(Score(actual, actual).at("quadruplet_cf1"), 1.0);
  for (const text::Aspect& other :
       {Quadruplet("the wine", "DRINKS", "good"), Quadruplet("wine", "FOOD", "good"),
        Quadruplet("wine", "DRINKS", "not good"), Quadruplet("wine", "DRINKS", ""),
        Quadruplet("", "DRINKS", "good")}) {
    EXPECT_DOUBLE_EQ(Score(actual, {other}).at("quadruplet_f1"), 0.0) << other.name;
    EXPECT_DOUBLE_EQ(Score(actual, {other}).at("quadruplet_cf1"), 0.0) << other.name;
  }
}

// Worked out by metrics_subtask_1_2_3.py of github.com/DimABSA/DimABSA2026 for subtask 3.
TEST(QuadrupletScores, TheContinuousScoreIsTheSharedTasks) {
  QuadrupletScores scores;
  scores.AddText({{Quadruplet("wine", "DRINKS", "good", 7.0f, 5.0f),
                   Quadruplet("staff", "SERVICE", "rude", 2.0f, 6.0f)}},
                 {{Quadruplet("wine", "DRINKS", "good", 4.0f, 9.0f),
                   Quadruplet("place", "SERVICE", "rude", 2.0f, 6.0f),
                   Quadruplet("staff", "SERVICE", "", 2.0f, 6.0f)}});
  scores.AddText({{Quadruplet("menu", "FOOD", "long", 1.0f, 1.0f)}},
                 {{Quadruplet("menu", "FOOD", "long", 9.0f, 9.0f)}});
  Metrics metrics;
  scores.Summarize(metrics);
  // Two of three are found, of four that are said; their distances are 5 and sqrt(128).
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_f1"), 2.0 * 2 / (3 + 4));
  EXPECT_NEAR(metrics.at("quadruplet_cf1"), 2.0 * (1.0 - 5.0 / std::sqrt(128.0)) / (3 + 4), 1e-12);
}

TEST(QuadrupletScores, NothingIsFartherThanTheGreatestDistance) {
  const Metrics metrics =
      Score({Quadruplet("a", "C", "o", -30.0f, -30.0f)}, {Quadruplet("a", "C", "o", 9.0f, 9.0f)});
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_f1"), 1.0);
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_cf1"), 0.0);
}

TEST(QuadrupletScores, WhatTheTextDoesNotSayIsAnAnswerToo) {
  const std::vector<text::Aspect> actual = {Quadruplet("", "PLACE", "awful"),
                                            Quadruplet("menu", "FOOD", ""),
                                            Quadruplet("", "PLACE", "")};
  const std::vector<text::Aspect> said = {actual[0], actual[1]};
  EXPECT_DOUBLE_EQ(Score(actual, said).at("quadruplet_f1"), 2.0 * 2 / (3 + 2));
}

TEST(QuadrupletScores, CapitalsAreAsSmallLetters) {
  EXPECT_DOUBLE_EQ(
      Score({Quadruplet("Crème", "FOOD#Q", "GOOD")}, {Quadruplet("CRÈME", "food#q", "good")})
          .at("quadruplet_f1"),
      1.0);
}

TEST(QuadrupletScores, WhatTheDataHaveTwiceCountsOnce) {
  const Metrics metrics =
      Score({Quadruplet("a", "C", "o", 2.0f, 2.0f), Quadruplet("a", "C", "o", 8.0f, 8.0f)},
            {Quadruplet("a", "C", "o", 2.0f, 2.0f)});
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_f1"), 1.0);
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_cf1"), 1.0);
}

TEST(QuadrupletScores, NothingSaidIsZero) {
  EXPECT_DOUBLE_EQ(Score({Quadruplet("a", "C", "o")}, {}).at("quadruplet_f1"), 0.0);
  EXPECT_DOUBLE_EQ(Score({Quadruplet("a", "C", "o")}, {}).at("quadruplet_cf1"), 0.0);
  Metrics metrics;
  QuadrupletScores().Summarize(metrics);
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_f1"), 0.0);
  EXPECT_DOUBLE_EQ(metrics.at("quadruplet_cf1"), 0.0);
}

}  // namespace
}  // namespace hpo::trainer
