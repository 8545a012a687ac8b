#include "memory/frontier/learned_survey.h"

#include <vector>

#include "gtest/gtest.h"
#include "memory/need/device_defaults.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {
namespace {

// What a configuration needs: 1 GiB, and 10 MiB for each row and layer.
Bytes Law(int64_t batch, int64_t layers) { return GiB(1) + MiB(10 * batch * layers); }

StudySpec OwnStudy() {
  StudySpec study;
  study.name = "own";
  study.space = SizesSpace();
  return study;
}

FitDecider LearnedDecider(const StudySpec& study, size_t num_trials) {
  std::vector<NeedObservation> seen;
  for (size_t i = 0; i < num_trials; ++i) {
    const auto batch = static_cast<int64_t>(2 + 5 * i % 60);
    const auto layers = static_cast<int64_t>(1 + 7 * i % 12);
    seen.push_back({.params = Sizes(batch, 64, 128, layers), .bytes = Law(batch, layers)});
  }
  WorkerFacts worker;
  worker.device = DefaultDevice("cuda", Bytes{});
  worker.plans = false;
  return FitDecider(study, worker,
                    {.learned = LearnedNeed(study.space, {"batch", "layers"}, seen)});
}

TEST(SurveyLearned, CountsWhatFitsByWhatTrialsUsed) {
  const StudySpec study = OwnStudy();
  const auto survey = SurveyLearned(study, LearnedDecider(study, 40),
                                    {.cards = {GiB(4), GiB(80)}, .most_configurations = 5000});
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->configurations, 6 * 8 * 6 * 12);
  EXPECT_FALSE(survey->sampled);
  EXPECT_EQ(survey->parameters, (std::vector<std::string>{"batch", "length", "hidden", "layers"}));
  int64_t fits = 0;
  for (int64_t batch = 2; batch <= 64; batch *= 2) {
    for (int64_t layers = 1; layers <= 12; ++layers) {
      if (Law(batch, layers) <= GiB(4) - MiB(256)) fits += 8 * 6;
    }
  }
  const CardSurvey& small = survey->cards[0];
  EXPECT_EQ(small.strict.fits + small.strict.does_not_fit, survey->configurations);
  EXPECT_NEAR(static_cast<double>(small.strict.fits), static_cast<double>(fits), 0.1 * 3456);
  EXPECT_EQ(small.plan.fits, small.strict.fits);
  ASSERT_TRUE(small.strict.cut.has_value());
  EXPECT_TRUE(small.strict.cut->parameter == "batch" || small.strict.cut->parameter == "layers");
  EXPECT_EQ(survey->cards[1].strict.does_not_fit, 0);
  EXPECT_FALSE(survey->cards[1].strict.cut.has_value());
  ASSERT_EQ(survey->models.size(), 1u);
  EXPECT_EQ(survey->models[0].strict_fits,
            (std::vector<int64_t>{small.strict.fits, survey->configurations}));
  EXPECT_LT(survey->models[0].smallest_literal, survey->models[0].largest_literal);
}

TEST(SurveyLearned, WhatWouldBeTriedIsNotKnownToFit) {
  const StudySpec study = OwnStudy();
  WorkerFacts worker;
  worker.device = DefaultDevice("cuda", Bytes{});
  worker.plans = false;
  const std::vector<NeedObservation> oom = {
      {.params = Sizes(32, 64, 128, 6), .bytes = GiB(4), .censored = true}};
  const FitDecider decider(study, worker,
                           {.learned = LearnedNeed(study.space, {"batch", "layers"}, oom)});
  const auto survey =
      SurveyLearned(study, decider, {.cards = {GiB(4), GiB(80)}, .most_configurations = 5000});
  ASSERT_TRUE(survey.ok()) << survey.status();
  const int64_t no_smaller = 2 * 7 * 8 * 6;  // batches of 32 and 64, 6 to 12 layers
  const PolicyCount& small = survey->cards[0].strict;
  EXPECT_EQ(small.fits, 0);
  EXPECT_EQ(small.does_not_fit, no_smaller);
  EXPECT_EQ(small.unknown, survey->configurations - no_smaller);
  EXPECT_EQ(survey->cards[1].strict.fits, 0);
  EXPECT_EQ(survey->cards[1].strict.unknown, survey->configurations);
  EXPECT_EQ(survey->unknown, survey->configurations - no_smaller);
}

TEST(SurveyLearned, DrawsFromALargeSpace) {
  const StudySpec study = OwnStudy();
  const auto survey = SurveyLearned(study, LearnedDecider(study, 40),
                                    {.cards = {GiB(4)}, .most_configurations = 100});
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_LE(survey->configurations, 100);
  EXPECT_GE(survey->configurations, 90);
  EXPECT_TRUE(survey->sampled);
}

TEST(SurveyLearned, SaysThatNothingIsKnown) {
  const StudySpec study = OwnStudy();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      SurveyLearned(study, LearnedDecider(study, 0), {.cards = {GiB(4)}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(SurveyLearned(study, LearnedDecider(study, 40), {}).status()));
}

}  // namespace
}  // namespace hpo::memory
