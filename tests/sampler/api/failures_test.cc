#include "sampler/api/failures.h"

#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

class FailingTrials {
 public:
  FailingTrials& Add(HistoryTrial trial) {
    trial.number = TrialNumber{static_cast<int64_t>(history_.trials().size())};
    history_.Apply({trial.number.value + 1, trial});
    return *this;
  }
  FailingTrials& Add(TrialState state, int count = 1) {
    for (int i = 0; i < count; ++i) Add(HistoryTrial{.state = state});
    return *this;
  }
  std::optional<TooManyFailures> Why(const Budget& budget, int64_t from = 0) const {
    return WhyFailed(history_, budget, TrialNumber{from});
  }

 private:
  History history_;
};

TEST(WhyFailed, TheFifthFailureEndsTheStudyByDefault) {
  FailingTrials trials;
  trials.Add(TrialState::kFailed, 4);
  EXPECT_FALSE(trials.Why({}).has_value());
  trials.Add(TrialState::kRunning).Add(TrialState::kFailed);
  EXPECT_EQ(trials.Why({}),
            (TooManyFailures{.why = "5 trials failed before one completed or was pruned "
                                    "(budget.failures_in_a_row: 5)",
                             .last = TrialNumber{5}}));
  EXPECT_FALSE(trials.Why({.failures_in_a_row = 6}).has_value());
  EXPECT_FALSE(trials.Why({.failures_in_a_row = 0}).has_value()) << "any number";
}

TEST(WhyFailed, OneThatWorkedIsEnoughWhereverItStands) {
  const HistoryTrial measured{.state = TrialState::kPruned, .intermediate = {{1, 0.5}}};
  for (const HistoryTrial& works : {HistoryTrial{.state = TrialState::kCompleted}, measured}) {
    EXPECT_FALSE(FailingTrials().Add(works).Add(TrialState::kFailed, 9).Why({}).has_value());
    EXPECT_FALSE(FailingTrials().Add(TrialState::kFailed, 9).Add(works).Why({}).has_value());
  }
}

TEST(WhyFailed, WhatShowsNothingDoesNotCount) {
  const HistoryTrial predicted{.state = TrialState::kPruned,
                               .prune_reason = PruneReason::kPredictedOutOfMemory};
  HistoryTrial imported{.state = TrialState::kCompleted};
  imported.imported = true;
  HistoryTrial imported_failure = imported;
  imported_failure.state = TrialState::kFailed;
  FailingTrials trials;
  trials.Add(TrialState::kFailed, 4);
  for (int i = 0; i < 9; ++i) trials.Add(imported_failure).Add(TrialState::kCancelled);
  EXPECT_FALSE(trials.Why({}).has_value());
  trials.Add(predicted).Add(imported).Add(TrialState::kFailed);
  EXPECT_TRUE(trials.Why({}).has_value());
}

TEST(WhyFailed, FailuresBeforeAResumeAreForgiven) {
  FailingTrials trials;
  trials.Add(TrialState::kFailed, 9);
  EXPECT_FALSE(trials.Why({}, 5).has_value());
  EXPECT_TRUE(trials.Why({}, 4).has_value());
}

TEST(WhyFailed, TheShareIsJudgedFromTheTenthTrialOn) {
  const Budget budget{.failed_share = 0.5};
  FailingTrials trials;
  trials.Add(TrialState::kCompleted).Add(TrialState::kFailed, 8).Add(TrialState::kRunning, 3);
  EXPECT_FALSE(trials.Why(budget).has_value()) << "nine have ended";
  trials.Add(TrialState::kPruned);
  EXPECT_EQ(trials.Why(budget), (TooManyFailures{.why = "8 of 10 trials failed "
                                                        "(budget.failed_share: 0.5)",
                                                 .last = TrialNumber{8}}));
  EXPECT_FALSE(trials.Why({}).has_value()) << "off by default";
  EXPECT_FALSE(trials.Why({.failed_share = 0.8}).has_value()) << "no more than the share";
}

}  // namespace
}  // namespace hpo::sampler
