#include "sampler/factory/termination.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

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
  Trials& Violating(std::vector<double> losses, double violation) {
    HistoryTrial trial{.number = TrialNumber{static_cast<int64_t>(history_.trials().size())},
                       .state = TrialState::kCompleted,
                       .losses = std::move(losses)};
    trial.violation = violation;
    history_.Apply({trial.number.value + 1, trial});
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
    StudySpec study;
    study.budget.no_progress = no_progress;
    return WhyTerminate(history_, study);
  }

  std::optional<std::string> WhyReached(std::optional<double> target, Direction direction) const {
    StudySpec study;
    study.name = "s";
    study.objectives = {{.metric = "m", .direction = direction}};
    study.budget.target = target;
    return WhyTargetReached(history_, study);
  }

 private:
  History history_;
};

std::string NoProgress(int64_t count, int64_t since) {
  return absl::StrCat("no progress in the ", count, " trials since trial ", since,
                      "; to go on, raise budget.no_progress in its file");
}

TEST(WhyTerminate, OnlyFeasibleTrialsImproveAndBeforeThemTheLeastViolating) {
  Trials trials;
  trials.Violating({0.1}, 2.0).Violating({0.5}, 1.0).Violating({0.0}, 1.5);
  EXPECT_EQ(trials.Why(2), std::nullopt);
  EXPECT_EQ(trials.Why(1), NoProgress(1, 1));
  trials.Completed({9.0});
  EXPECT_EQ(trials.Why(1), std::nullopt) << "the first feasible one";
  trials.Violating({0.0}, 0.1).Completed({9.5});
  EXPECT_EQ(trials.Why(2), NoProgress(2, 3));
}

TEST(WhyTerminate, CountsTrialsSinceTheLastThatImproved) {
  Trials trials;
  trials.Completed({1.0}).Completed({0.5}).Completed({0.6}).Completed({0.5});
  EXPECT_EQ(trials.Why(3), std::nullopt);
  EXPECT_EQ(trials.Why(2), NoProgress(2, 1)) << "equal is no progress";
  trials.Completed({0.4});
  EXPECT_EQ(trials.Why(2), std::nullopt);
  trials.Pruned(2);
  EXPECT_EQ(trials.Why(2), NoProgress(2, 4));
}

TEST(WhyTerminate, NeverWithoutTheBudgetOrAResult) {
  Trials trials;
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Pruned(9);
  EXPECT_EQ(trials.Why(1), std::nullopt) << "nothing has completed";
  trials.Completed({1.0}).Pruned(9);
  EXPECT_EQ(trials.Why(std::nullopt), std::nullopt);
  EXPECT_EQ(trials.Why(9), NoProgress(9, 9));
}

TEST(WhyTerminate, WhatProvesNothingDoesNotCount) {
  Trials trials;
  trials.Completed({1.0});
  for (const TrialState state :
       {TrialState::kFailed, TrialState::kCancelled, TrialState::kQueued, TrialState::kRunning}) {
    trials.Add(state);
  }
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Completed({kUnbounded});
  EXPECT_EQ(trials.Why(1), NoProgress(1, 0)) << "no finite objective";
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
  EXPECT_EQ(trials.Why(1), NoProgress(1, 2));
  trials.Completed({0.0, 0.0});
  EXPECT_EQ(trials.Why(1), std::nullopt);
  trials.Completed({1.0, 0.5});
  EXPECT_EQ(trials.Why(1), NoProgress(1, 4));
}

// What was proposed counts, whatever became of it.
TEST(WhyTerminate, WhenTrialsHaveHadTheWholeSpace) {
  StudySpec study;
  study.sampler.type = "grid";
  study.space.parameters = {{.name = "n", .domain = IntDomain{.low = 1, .high = 2}}};
  History history;
  EXPECT_EQ(WhyTerminate(history, study), std::nullopt);
  history.Apply({1, {.number = TrialNumber{0}, .params = {{"n", int64_t{2}}}}});
  EXPECT_EQ(WhyTerminate(history, study), std::nullopt);
  history.Apply(
      {2, {.number = TrialNumber{1}, .params = {{"n", int64_t{1}}}, .state = TrialState::kFailed}});
  study.name = "two";
  const char* const used_up =
      "every configuration of the space has been tried; to go on: hpo study edit two FILE, with "
      "more values in FILE";
  EXPECT_EQ(WhyTerminate(history, study), used_up);
  history.Apply(
      {3, {.number = TrialNumber{2}, .params = {{"n", int64_t{1}}}, .state = TrialState::kFailed}});
  for (const char* const type : {"random", "auto"}) {
    study.sampler.type = type;
    EXPECT_EQ(WhyTerminate(history, study), used_up);
  }
}

TEST(WhyTargetReached, TheFirstFeasibleTrialThatIsAsGoodReachesIt) {
  Trials trials;
  trials.Pruned(1).Violating({0.1}, 1.0).Completed({0.5}).Completed({0.3}).Completed({0.2});
  EXPECT_EQ(trials.WhyReached(std::nullopt, Direction::kMinimize), std::nullopt);
  EXPECT_EQ(trials.WhyReached(0.1, Direction::kMinimize), std::nullopt) << "it is not feasible";
  EXPECT_EQ(trials.WhyReached(0.3, Direction::kMinimize),
            "trial #3 reached the target: m 0.3, at most 0.3; to go on: hpo study extend s "
            "--target none");
}

TEST(WhyTargetReached, OfWhatIsMaximizedMoreIsBetter) {
  Trials trials;
  trials.Completed({-0.7}).Completed({-0.9});
  EXPECT_EQ(trials.WhyReached(0.95, Direction::kMaximize), std::nullopt);
  EXPECT_EQ(trials.WhyReached(0.8, Direction::kMaximize),
            "trial #1 reached the target: m 0.9, at least 0.8; to go on: hpo study extend s "
            "--target none");
}

}  // namespace
}  // namespace hpo::sampler
