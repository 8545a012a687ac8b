#include "sampler/termination.h"

#include <limits>

#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Trials {
 public:
  Trials& Add(TrialState state, std::vector<double> losses = {}) {
    const TrialNumber number{static_cast<int64_t>(history_.trials().size())};
    history_.Apply(
        {number.value + 1, {.number = number, .state = state, .losses = std::move(losses)}});
    return *this;
  }
  Trials& Completed(std::vector<double> losses) {
    return Add(TrialState::kCompleted, std::move(losses));
  }
  Trials& Pruned(int count) {
    for (int i = 0; i < count; ++i) Add(TrialState::kPruned);
    return *this;
  }
  // Replaces the state of a trial.
  Trials& End(int64_t number, std::vector<double> losses) {
    history_.Apply({1000 + number,
                    {.number = TrialNumber{number},
                     .state = TrialState::kCompleted,
                     .losses = std::move(losses)}});
    return *this;
  }
  std::optional<std::string> Why(std::optional<int64_t> no_progress) const {
    return WhyTerminate(history_, {.no_progress = no_progress});
  }

 private:
  History history_;
};

TEST(WhyTerminate, CountsTrialsSinceTheLastThatImproved) {
  Trials trials;
  trials.Completed({1.0}).Completed({0.5}).Completed({0.6}).Completed({0.5});
  EXPECT_EQ(trials.Why(3), std::nullopt);
  EXPECT_EQ(trials.Why(2), "no progress in the 2 trials since trial 1") << "equal is no progress";
  trials.Completed({0.4});
  EXPECT_EQ(trials.Why(2), std::nullopt);
  trials.Pruned(2);
  EXPECT_EQ(trials.Why(2), "no progress in the 2 trials since trial 4");
}

TEST(WhyTerminate, NeverWithoutTheBudgetOrAResult) {
  Trials trials;
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Pruned(9);
  EXPECT_EQ(trials.Why(1), std::nullopt) << "nothing has completed";
  trials.Completed({1.0}).Pruned(9);
  EXPECT_EQ(trials.Why(std::nullopt), std::nullopt);
  EXPECT_EQ(trials.Why(9), "no progress in the 9 trials since trial 9");
}

TEST(WhyTerminate, WhatProvesNothingDoesNotCount) {
  Trials trials;
  trials.Completed({1.0});
  for (const TrialState state :
       {TrialState::kFailed, TrialState::kCancelled, TrialState::kQueued, TrialState::kRunning}) {
    trials.Add(state);
  }
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Completed({kInfinity});
  EXPECT_EQ(trials.Why(1), "no progress in the 1 trials since trial 0") << "no finite objective";
}

TEST(WhyTerminate, ARunningTrialMayBringProgressAfterAll) {
  Trials trials;
  trials.Completed({1.0}).Add(TrialState::kRunning).Completed({2.0}).Completed({3.0});
  EXPECT_NE(trials.Why(2), std::nullopt);
  trials.End(1, {0.5});
  EXPECT_NE(trials.Why(2), std::nullopt) << "two of a higher number were no better";
  EXPECT_EQ(trials.Why(3), std::nullopt);
}

TEST(WhyTerminate, WithSeveralObjectivesProgressIsWhatNoOtherDominates) {
  Trials trials;
  trials.Completed({1.0, 5.0}).Completed({5.0, 1.0}).Completed({3.0, 3.0});
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Completed({3.0, 4.0});
  EXPECT_EQ(trials.Why(1), "no progress in the 1 trials since trial 2");
  trials.Completed({0.0, 0.0});
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Completed({1.0, 0.5});
  EXPECT_EQ(trials.Why(1), "no progress in the 1 trials since trial 4");
}

}  // namespace
}  // namespace hpo
