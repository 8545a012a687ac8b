#include "sampler/api/history.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

const std::vector<Objective> kMaximizeF1 = {{"macro_f1", Direction::kMaximize}};

Trial StoredTrial(TrialState state, std::optional<TrialOutcome> outcome) {
  Trial trial;
  trial.id = {"study", TrialNumber{3}};
  trial.state = state;
  trial.params = {{"train.lr", 3e-5}};
  trial.outcome = std::move(outcome);
  return trial;
}

Attempt FinishedAttempt(Bytes reserved_peak) {
  Attempt attempt;
  attempt.state = AttemptState::kFinished;
  attempt.plan = {.effective_batch = 32, .micro_batch = 32};
  attempt.final_plan = MemoryPlan{.effective_batch = 32, .micro_batch = 8};
  attempt.memory =
      MemoryReport{.live_peak = GiB(3), .reserved_peak = reserved_peak, .limit = GiB(16)};
  return attempt;
}

TEST(History, EventsOfOneTrialReplaceEachOther) {
  History history;
  history.Apply({1, {.number = TrialNumber{0}}});
  history.Apply({2, {.number = TrialNumber{1}}});
  history.Apply({3, {.number = TrialNumber{0}, .state = TrialState::kCompleted, .losses = {0.5}}});
  ASSERT_EQ(history.trials().size(), 2u);
  EXPECT_EQ(history.trials().at(TrialNumber{0}).losses, std::vector<double>{0.5});
  EXPECT_EQ(history.sequence(), 3);
}

TEST(History, FinishedMeansCompletedOrPruned) {
  History history;
  int64_t sequence = 0;
  for (const TrialState state :
       {TrialState::kQueued, TrialState::kRunning, TrialState::kCompleted, TrialState::kPruned,
        TrialState::kFailed, TrialState::kCancelled}) {
    history.Apply({++sequence, {.number = TrialNumber{sequence}, .state = state}});
  }
  EXPECT_EQ(history.num_finished(), 2);
}

TEST(ToHistory, LossesAreSmallerIsBetterAndWhatIsMissingIsWorst) {
  const std::vector<Objective> objectives = {{"macro_f1", Direction::kMaximize},
                                             {"loss", Direction::kMinimize},
                                             {"absent", Direction::kMaximize}};
  const Trial trial =
      StoredTrial(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.8}, {"loss", 0.3}}});
  const HistoryTrial seen = ToHistory(trial, {}, objectives);
  EXPECT_EQ(seen.losses, (std::vector<double>{-0.8, 0.3, kUnbounded}));
  EXPECT_EQ(seen.number, TrialNumber{3});
  EXPECT_EQ(seen.params, trial.params);
}

// Storage keeps no difference between NaN and the infinities, so neither may we.
TEST(ToHistory, ObjectivesThatAreNotFiniteAreWorstInBothDirections) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    for (const double value : {kNoNumber, kUnbounded, -kUnbounded}) {
      const Trial trial = StoredTrial(TrialState::kCompleted, Completed{.metrics = {{"m", value}}});
      EXPECT_EQ(ToHistory(trial, {}, {{"m", direction}}).losses, std::vector<double>{kUnbounded});
    }
  }
}

TEST(ToHistory, OnlyCompletedTrialsHaveLosses) {
  const Trial trial =
      StoredTrial(TrialState::kPruned,
                  StoppedByPruner{.pruner = "median", .step = 20, .metrics = {{"macro_f1", 0.4}}});
  const HistoryTrial seen = ToHistory(trial, {}, kMaximizeF1);
  EXPECT_TRUE(seen.losses.empty());
  EXPECT_EQ(seen.prune_reason, PruneReason::kPruner);
  EXPECT_EQ(seen.intermediate, (std::map<int64_t, double>{{20, -0.4}}));
}

TEST(ToHistory, TheFirstReportOfAStepCounts) {
  const std::vector<Measurement> measurements = {
      {.step = 10, .metrics = {{"macro_f1", 0.5}}},
      {.step = 10, .metrics = {{"macro_f1", 0.9}}},
      {.step = 20, .metrics = {{"loss", 0.1}}},
      {.step = 30, .metrics = {{"macro_f1", kUnbounded}}}};
  const HistoryTrial seen =
      ToHistory(StoredTrial(TrialState::kRunning, std::nullopt), measurements, kMaximizeF1);
  ASSERT_EQ(seen.intermediate.size(), 2u);
  EXPECT_EQ(seen.intermediate.at(10), -0.5);
  EXPECT_TRUE(std::isnan(seen.intermediate.at(30)));
}

TEST(ToHistory, ACompletedTrialShowsItsUse) {
  Trial trial = StoredTrial(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.5}}});
  Attempt lost = FinishedAttempt(GiB(9));
  lost.state = AttemptState::kLost;
  trial.attempts = {lost, FinishedAttempt(GiB(4))};
  const HistoryTrial seen = ToHistory(trial, {}, kMaximizeF1);
  ASSERT_EQ(seen.memory.size(), 1u);
  EXPECT_EQ(seen.memory[0].bytes, GiB(4));
  EXPECT_FALSE(seen.memory[0].censored);
  EXPECT_EQ(seen.memory[0].plan.micro_batch, 8);
}

TEST(ToHistory, UseIsTheDevicesThenTheAllocatorsThenWhatWasAlive) {
  Trial trial = StoredTrial(TrialState::kCompleted, Completed{});
  trial.attempts = {FinishedAttempt(Bytes{0})};
  EXPECT_EQ(ToHistory(trial, {}, kMaximizeF1).memory.at(0).bytes, GiB(3));
  trial.attempts[0].memory->reserved_peak = GiB(4);
  EXPECT_EQ(ToHistory(trial, {}, kMaximizeF1).memory.at(0).bytes, GiB(4));
  trial.attempts[0].memory->device_peak = GiB(5);
  EXPECT_EQ(ToHistory(trial, {}, kMaximizeF1).memory.at(0).bytes, GiB(5));
}

TEST(ToHistory, OutOfMemoryTeachesByItsKind) {
  const std::pair<OomKind, bool> cases[] = {{OomKind::kConfiguration, true},
                                            {OomKind::kDirtyDevice, false},
                                            {OomKind::kFragmentation, false},
                                            {OomKind::kLatePeak, true},
                                            {OomKind::kHost, false}};
  for (const auto& [kind, teaches] : cases) {
    SCOPED_TRACE(std::string(Name(kind)));
    const Trial trial = StoredTrial(
        TrialState::kPruned,
        OutOfMemory{.kind = kind, .requested = GiB(2), .peak = GiB(15), .limit = GiB(16)});
    const HistoryTrial seen = ToHistory(trial, {}, kMaximizeF1);
    EXPECT_EQ(seen.memory.size(), teaches ? 1u : 0u);
    if (!teaches) continue;
    EXPECT_TRUE(seen.memory[0].censored);
    EXPECT_EQ(seen.memory[0].bytes, GiB(17));
    EXPECT_EQ(seen.memory[0].limit, GiB(16));
  }
}

TEST(ToHistory, APredictedOutOfMemoryKnowsTheNeed) {
  const Trial trial = StoredTrial(
      TrialState::kPruned, OutOfMemory{.predicted = true, .limit = GiB(16), .needed = GiB(21)});
  const HistoryTrial seen = ToHistory(trial, {}, kMaximizeF1);
  EXPECT_EQ(seen.prune_reason, PruneReason::kPredictedOutOfMemory);
  EXPECT_EQ(seen.memory.at(0).bytes, GiB(21));
}

TEST(ToHistory, ATrialThatWaitsForALargerCardNeedsMore) {
  Trial trial = StoredTrial(TrialState::kQueued, std::nullopt);
  trial.min_capacity = GiB(8);
  const HistoryTrial seen = ToHistory(trial, {}, kMaximizeF1);
  EXPECT_GT(MemoryViolation(seen, GiB(8), MemoryPolicy::kPlan), 0.0);
  EXPECT_EQ(MemoryViolation(seen, GiB(9), MemoryPolicy::kPlan), 0.0);
}

TEST(LargerClassThan, IsAnEighthAboveWhatTheTrialRanWith) {
  const auto larger = [](std::vector<MemoryObservation> memory) {
    return LargerClassThan(HistoryTrial{.memory = std::move(memory)});
  };
  const Bytes most{std::numeric_limits<int64_t>::max()};
  EXPECT_EQ(larger({{.bytes = GiB(2), .limit = GiB(8)}}), GiB(9));
  EXPECT_EQ(larger({{.bytes = GiB(2), .limit = GiB(8)}, {.bytes = GiB(2), .limit = GiB(16)}}),
            GiB(18));
  EXPECT_EQ(larger({}), std::nullopt);
  EXPECT_EQ(larger({{.bytes = GiB(2)}}), std::nullopt);
  EXPECT_EQ(larger({{.bytes = GiB(8), .censored = true, .limit = GiB(8)}}), std::nullopt)
      << "it did not run there";
  EXPECT_EQ(larger({{.bytes = GiB(2), .limit = most}}), std::nullopt);
}

TEST(MemoryViolation, IsTheExcessOverTheAskingCapacity) {
  const MemoryPlan whole{.effective_batch = 32, .micro_batch = 32};
  const MemoryPlan smallest{.effective_batch = 32, .micro_batch = 1};
  struct Case {
    const char* name;
    MemoryObservation seen;
    MemoryPolicy policy;
    double expected;
  };
  const Case cases[] = {
      {"OOM at the same limit", {GiB(16), true, GiB(16), whole}, MemoryPolicy::kPlan, 1e-9},
      {"OOM at a larger limit", {GiB(24), true, GiB(24), whole}, MemoryPolicy::kPlan, 0.5},
      {"OOM at a smaller limit", {GiB(8), true, GiB(8), whole}, MemoryPolicy::kStrict, 0.0},
      {"need known from a smaller card", {GiB(20), true, GiB(8), whole}, MemoryPolicy::kPlan, 0.25},
      {"used less", {GiB(16), false, GiB(80), whole}, MemoryPolicy::kStrict, 0.0},
      {"used more, literally", {GiB(20), false, GiB(80), whole}, MemoryPolicy::kStrict, 0.25},
      {"used more, estimate off", {GiB(20), false, GiB(80), whole}, MemoryPolicy::kOff, 0.25},
      {"used more, could be split", {GiB(20), false, GiB(80), whole}, MemoryPolicy::kPlan, 0.0},
      {"used more at the end", {GiB(20), false, GiB(80), smallest}, MemoryPolicy::kPlan, 0.25},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const double violation = MemoryViolation({.memory = {test.seen}}, GiB(16), test.policy);
    EXPECT_NEAR(violation, test.expected, 1e-8);
    EXPECT_EQ(violation > 0.0, test.expected > 0.0);
  }
}

TEST(MemoryViolation, TheWorstObservationCounts) {
  const HistoryTrial trial{.memory = {{GiB(20), true, GiB(20), {}}, {GiB(10), false, GiB(80), {}}}};
  EXPECT_NEAR(MemoryViolation(trial, GiB(16), MemoryPolicy::kPlan), 0.25, 1e-8);
  EXPECT_EQ(MemoryViolation({}, GiB(16), MemoryPolicy::kPlan), 0.0);
}

TEST(MemoryViolation, WithoutAKnownLimitOnlyWhatRanOutDidNotFit) {
  HistoryTrial trial{.memory = {{GiB(10), false, Bytes{}, {}}}};
  EXPECT_EQ(MemoryViolation(trial, Bytes{}, MemoryPolicy::kStrict), 0.0);
  trial.prune_reason = PruneReason::kOutOfMemory;
  EXPECT_GT(MemoryViolation(trial, Bytes{}, MemoryPolicy::kStrict), 0.0);
}

}  // namespace
}  // namespace hpo::sampler
