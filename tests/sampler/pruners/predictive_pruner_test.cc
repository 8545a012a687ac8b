#include "sampler/pruners/predictive_pruner.h"

#include <cmath>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// Trials that the pruner may stop; 1 in 6 it never does.
constexpr int64_t kAskingTrial = 1000;

// Trials that have ended, in "smaller is better" sign, and one that runs.
class PredictivePrunerTest : public ::testing::Test {
 protected:
  void Completed(std::map<int64_t, double> values, double loss, double violation = 0.0) {
    const TrialNumber number{static_cast<int64_t>(history_.trials().size())};
    history_.Apply({number.value + 1,
                    {.number = number,
                     .state = TrialState::kCompleted,
                     .losses = {loss},
                     .intermediate = std::move(values),
                     .violation = violation}});
  }

  // Twenty of ten steps; `end` is of the place at step 1, from 0, the best, to 19. They come in no
  // order of places.
  template <typename End>
  void TwentyThatEnd(End end) {
    for (int number = 0; number < 20; ++number) {
      const int place = number * 7 % 20;
      const double loss = end(place);
      Completed({{1, 1.0 + place}, {5, 0.5 + place}, {10, loss}}, loss);
    }
  }

  std::optional<PruneDecision> Decide(std::map<int64_t, double> values,
                                      int64_t number = kAskingTrial,
                                      Direction direction = Direction::kMinimize) const {
    History with = history_;
    with.Apply({1000, {.number = TrialNumber{number}, .intermediate = std::move(values)}});
    const PrunerSpec spec{.type = "predictive"};
    return PredictivePruner(spec, direction).Decide(with, TrialNumber{number});
  }
  bool Stops(std::map<int64_t, double> values, int64_t number = kAskingTrial) const {
    return Decide(std::move(values), number).has_value();
  }

  History history_;
};

double AsItBegan(int place) { return 0.1 * place; }
// The best end of those that begin in the middle.
double BestInTheMiddle(int place) { return std::abs(place - 10); }
double Mixed(int place) { return (place * 7) % 20; }

TEST_F(PredictivePrunerTest, NeverStopsTheFirstTrials) {
  EXPECT_FALSE(Stops({{1, 100.0}}));
  EXPECT_FALSE(Stops({{1, kNoNumber}}));
  history_.Apply({1, {.number = TrialNumber{0}, .intermediate = {{1, 1.0}}}});
  EXPECT_FALSE(Stops({{1, 100.0}})) << "how long a trial is, is not known";
}

TEST_F(PredictivePrunerTest, WhereFirstValuesTellItStopsWhatBeginsBadly) {
  TwentyThatEnd(AsItBegan);
  EXPECT_FALSE(Stops({{1, 0.5}}));
  EXPECT_FALSE(Stops({{1, 4.0}}));
  EXPECT_TRUE(Stops({{1, 12.0}}));
  EXPECT_TRUE(Stops({{1, 100.0}}));
}

TEST_F(PredictivePrunerTest, WhereTheyTellNothingAllGoOn) {
  TwentyThatEnd(Mixed);
  for (const double value : {0.5, 5.0, 10.0, 15.0}) EXPECT_FALSE(Stops({{1, value}})) << value;
}

TEST_F(PredictivePrunerTest, WhatBeginsSlowlyAndEndsWellGoesOn) {
  TwentyThatEnd(BestInTheMiddle);
  EXPECT_FALSE(Stops({{1, 11.0}}));
  EXPECT_TRUE(Stops({{1, 100.0}}));
}

TEST_F(PredictivePrunerTest, TheLessIsLeftTheMoreIsWorthIt) {
  TwentyThatEnd(AsItBegan);
  EXPECT_TRUE(Stops({{1, 12.0}}));
  EXPECT_FALSE(Stops({{1, 12.0}, {5, 11.5}, {9, 11.5}})) << "a tenth is left";
  EXPECT_FALSE(Stops({{1, 9.0}, {10, 100.0}})) << "nothing is left";
  EXPECT_FALSE(Stops({{1, 9.0}, {11, 100.0}})) << "longer than any before";
}

TEST_F(PredictivePrunerTest, WhereNewTrialsAreNoLongerGoodFewerAreStopped) {
  TwentyThatEnd(AsItBegan);
  EXPECT_TRUE(Stops({{1, 16.0}}));
  for (int i = 0; i < 12; ++i) Completed({{1, 30.0}, {5, 30.0}, {10, 30.0}}, 30.0);
  EXPECT_FALSE(Stops({{1, 16.0}})) << "a new one is not good either";
  EXPECT_TRUE(Stops({{1, 100.0}}));
}

TEST_F(PredictivePrunerTest, OthersCountByTheirLastValueUpToTheStep) {
  TwentyThatEnd(AsItBegan);
  EXPECT_TRUE(Stops({{3, 100.0}})) << "nobody reported at step 3, all at 1 and 5";
  EXPECT_FALSE(Stops({{3, 0.5}}));
}

TEST_F(PredictivePrunerTest, NanIsWorseThanAnyNumber) {
  TwentyThatEnd(AsItBegan);
  EXPECT_TRUE(Stops({{1, kNoNumber}}));
}

TEST_F(PredictivePrunerTest, WhatViolatesAConstraintIsNotGood) {
  for (int place = 0; place < 20; ++place) {
    const double loss = place;
    Completed({{1, loss}, {10, loss}}, loss, /*violation=*/place < 10 ? 1.0 : 0.0);
  }
  EXPECT_FALSE(Stops({{1, 11.5}}));
  EXPECT_TRUE(Stops({{1, 2.5}}));
}

TEST_F(PredictivePrunerTest, WhatEndedWithoutALossIsNotGood) {
  TwentyThatEnd(AsItBegan);
  for (int64_t number = 20; number < 40; ++number) {
    history_.Apply({number,
                    {.number = TrialNumber{number},
                     .state = TrialState::kCompleted,
                     .intermediate = {{1, 30.0}, {10, 30.0}}}});
  }
  EXPECT_TRUE(Stops({{1, 30.0}}));
  EXPECT_FALSE(Stops({{1, 1.0}}));
}

TEST_F(PredictivePrunerTest, SomeTrialsGoOnWhateverTheyReport) {
  TwentyThatEnd(AsItBegan);
  int num_going_on = 0;
  for (int64_t number = 100; number < 700; ++number) num_going_on += !Stops({{1, 100.0}}, number);
  EXPECT_NEAR(num_going_on, 100, 30);
}

TEST_F(PredictivePrunerTest, SaysWhyInTheMetricsOwnUnit) {
  TwentyThatEnd(AsItBegan);
  const auto stop = Decide({{1, 100.0}}, kAskingTrial, Direction::kMaximize);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->pruner, "predictive");
  EXPECT_EQ(stop->step, 1);
  EXPECT_EQ(stop->why.substr(0, 44), "-100 after step 1, with 90 % of a trial left");
}

}  // namespace
}  // namespace hpo::sampler
