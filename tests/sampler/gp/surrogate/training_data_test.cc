#include "sampler/gp/surrogate/training_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

class TrainingDataTest : public testing::Test {
 protected:
  TrainingDataTest() { space_.parameters = {MakeParameter("x", FloatDomain{})}; }

  HistoryTrial& Add(TrialState state, double x) {
    trials_.push_back({.number = TrialNumber{static_cast<int64_t>(trials_.size())},
                       .params = {{"x", x}},
                       .state = state});
    return trials_.back();
  }

  void Complete(double x, double loss) { Add(TrialState::kCompleted, x).losses = {loss}; }

  TrainingData Collect() const {
    History history;
    int64_t sequence = 0;
    for (const HistoryTrial& trial : trials_) history.Apply({++sequence, trial});
    const CodedSpace coded(space_);
    return CollectTrainingData(history, coded, GiB(8), MemoryPolicy::kStrict);
  }

  SearchSpace space_;
  std::vector<HistoryTrial> trials_;
};

TEST_F(TrainingDataTest, EachStateTeachesItsOwn) {
  Complete(0.1, 5.0);
  Add(TrialState::kRunning, 0.2);
  Add(TrialState::kFailed, 0.3);
  Add(TrialState::kCancelled, 0.4);
  Add(TrialState::kQueued, 0.5);
  Add(TrialState::kPruned, 0.6).prune_reason = PruneReason::kPruner;
  Add(TrialState::kPruned, 0.7).prune_reason = PruneReason::kHostOutOfMemory;
  HistoryTrial& oom = Add(TrialState::kPruned, 0.8);
  oom.prune_reason = PruneReason::kOutOfMemory;
  oom.memory = {{GiB(8), true, GiB(8), {}}};
  const TrainingData data = Collect();
  EXPECT_EQ(data.observed, (std::vector<Codes>{{0.1}}));
  EXPECT_EQ(data.losses, std::vector<double>{5.0});
  EXPECT_EQ(data.fantasies, (std::vector<Codes>{{0.2}, {0.6}}));
  EXPECT_EQ(data.memory.codes, (std::vector<Codes>{{0.1}, {0.6}, {0.8}}));
  EXPECT_EQ(data.memory.labels, (std::vector<double>{-1.0, -1.0, 1.0}));
  EXPECT_TRUE(data.memory.any_bad);
  EXPECT_EQ(data.failure.codes, (std::vector<Codes>{{0.1}, {0.3}, {0.6}}));
  EXPECT_EQ(data.failure.labels, (std::vector<double>{-1.0, 1.0, -1.0}));
  EXPECT_TRUE(data.failure.any_bad);
  EXPECT_EQ(data.tried.size(), trials_.size());
}

TEST_F(TrainingDataTest, ViolationIsTheLossUntilATrialThatTeachesIsFeasible) {
  const auto complete = [this](double x, double loss, double excess) {
    Complete(x, loss);
    trials_.back().excesses = {excess, -0.5};
    trials_.back().violation = std::max(excess, 0.0);
  };
  complete(0.1, 5.0, 2.0);
  complete(0.2, 1.0, kUnbounded);
  complete(7.0, 3.0, -1.0);  // outside the space
  TrainingData data = Collect();
  EXPECT_EQ(data.meaning, LossMeaning::kViolation);
  EXPECT_EQ(data.losses, (std::vector<double>{2.0, 2.0}));
  EXPECT_TRUE(data.constraints.empty());
  EXPECT_EQ(Incumbents(data).front(), Codes{0.1});

  complete(0.3, 9.0, -1.0);
  data = Collect();
  EXPECT_EQ(data.meaning, LossMeaning::kObjective);
  EXPECT_EQ(data.losses, (std::vector<double>{5.0, 1.0, 9.0}));
  EXPECT_EQ(data.feasible, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(Incumbents(data), (std::vector<Codes>{{0.3}}));
  ASSERT_EQ(data.constraints.size(), 2u);
  const std::vector<double>& labels = data.constraints[0].labels;
  ASSERT_EQ(labels.size(), 3u);
  EXPECT_NEAR(labels[0], std::log(3.0), 1e-12);
  EXPECT_EQ(labels[1], labels[0]) << "not reported: as the worst that was";
  EXPECT_NEAR(labels[2], -std::log(2.0), 1e-12);
  EXPECT_TRUE(data.constraints[0].any_bad);
  EXPECT_FALSE(data.constraints[1].any_bad);
}

// The share of a limit that is nearly 0, of a metric that is far below it.
TEST_F(TrainingDataTest, AnExcessBeyondAllNumbersHasALabelAllTheSame) {
  Complete(0.1, 5.0);
  trials_.back().excesses = {-kUnbounded};
  Complete(0.2, 5.0);
  trials_.back().excesses = {std::numeric_limits<double>::max()};
  trials_.back().violation = std::numeric_limits<double>::max();
  const TrainingData data = Collect();
  const double most = std::log(std::numeric_limits<double>::max());
  EXPECT_NEAR(data.constraints[0].labels[0], -most, 1e-9);
  EXPECT_NEAR(data.constraints[0].labels[1], most, 1e-9);
}

// It ran on a larger card: a loss there says nothing of quality that this card can have.
TEST_F(TrainingDataTest, WhatUsedMoreThanThisCardHasIsLabelledTooBig) {
  Complete(0.1, 5.0);
  trials_.back().memory = {{GiB(12), false, GiB(24), {}}};
  const TrainingData data = Collect();
  EXPECT_TRUE(data.losses.empty());
  EXPECT_EQ(data.memory.labels, std::vector<double>{1.0});
  EXPECT_FALSE(data.failure.any_bad);
}

TEST_F(TrainingDataTest, LossesThatAreNotFiniteTakeTheEnds) {
  for (const double loss : {kNoNumber, 2.0, kUnbounded, -kUnbounded, 7.0}) Complete(0.5, loss);
  EXPECT_EQ(Collect().losses, (std::vector<double>{7.0, 2.0, 7.0, 2.0, 7.0}));
}

TEST_F(TrainingDataTest, NothingFiniteIsNothing) {
  Complete(0.5, kNoNumber);
  Complete(0.5, kUnbounded);
  EXPECT_TRUE(Collect().losses.empty());
  EXPECT_TRUE(Collect().observed.empty());
  EXPECT_EQ(Collect().memory.codes.size(), 2u);
}

TEST_F(TrainingDataTest, TrialsOutsideTheSpaceTeachNothing) {
  Complete(7.0, 1.0);
  Complete(0.5, 2.0);
  trials_.back().params = {{"y", 0.5}};
  EXPECT_TRUE(Collect().losses.empty());
  EXPECT_TRUE(Collect().memory.codes.empty());
}

// Four completed trials gained 1, 2, 3 and 4 after step 10; three reported at step 20.
TEST_F(TrainingDataTest, PrunedTrialsCountWhereOthersReportedAtTheirStep) {
  for (int i = 1; i <= 4; ++i) {
    Complete(0.1 * i, 10.0 - i);
    trials_.back().intermediate = {{10, 10.0}};
    if (i < 4) trials_.back().intermediate.Add(20, 9.0);
  }
  HistoryTrial& comparable = Add(TrialState::kPruned, 0.7);
  comparable.prune_reason = PruneReason::kPruner;
  comparable.intermediate = {{5, 50.0}, {10, 30.0}};
  HistoryTrial& alone = Add(TrialState::kPruned, 0.8);
  alone.prune_reason = PruneReason::kPruner;
  alone.intermediate = {{10, 30.0}, {20, 29.0}};
  const TrainingData data = Collect();
  ASSERT_EQ(data.losses.size(), 5u);
  EXPECT_EQ(data.observed.back(), Codes{0.7});
  EXPECT_EQ(data.losses.back(), 28.0);  // gains -4, -3, -2, -1: the upper middle
  EXPECT_EQ(data.fantasies, (std::vector<Codes>{{0.8}}));
}

TEST_F(TrainingDataTest, OldJudgementsAreLeftOutInBlocks) {
  for (int i = 0; i < 256; ++i) Complete(0.5, 1.0);
  EXPECT_EQ(Collect().memory.labels.size(), 256u);
  Complete(0.5, 1.0);
  EXPECT_EQ(Collect().memory.labels.size(), 193u);
  for (int i = 0; i < 63; ++i) Complete(0.5, 1.0);
  EXPECT_EQ(Collect().memory.labels.size(), 256u);
}

// What was learned to be avoided is not met again: it must not go with the oldest of all.
TEST_F(TrainingDataTest, OldJudgementsAreLeftOutOfEachKind) {
  const auto add = [this](TrialState state, int count) {
    for (int i = 0; i < count; ++i) {
      Add(state, 0.5).losses = {static_cast<double>(trials_.size())};
    }
  };
  const auto num_failed = [](const TrainingData& data) {
    return std::count(data.failure.labels.begin(), data.failure.labels.end(), 1.0);
  };
  add(TrialState::kFailed, 100);
  add(TrialState::kCompleted, 600);
  TrainingData data = Collect();
  EXPECT_EQ(num_failed(data), 100);
  EXPECT_EQ(data.failure.labels.size(), 100u + 152u);
  EXPECT_EQ(data.failure.labels.front(), 1.0) << "by number still";
  EXPECT_EQ(data.failure.codes.size(), data.failure.labels.size());
  EXPECT_EQ(data.memory.labels.size(), 216u) << "of one kind alone";

  add(TrialState::kFailed, 300);
  data = Collect();
  EXPECT_EQ(num_failed(data), 80) << "400 less five blocks";
  EXPECT_EQ(data.failure.labels.size(), 80u + 88u);
  EXPECT_EQ(data.failure.labels.back(), 1.0);
}

TEST(SelectObservations, KeepsTheBestHalfAndTheNewestOfTheRest) {
  const std::vector<double> losses = {9.0, 1.0, 8.0, 2.0, 7.0, 6.0};
  EXPECT_EQ(SelectObservations(losses, 6), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(SelectObservations(losses, 4), (std::vector<size_t>{1, 3, 4, 5}));
  EXPECT_TRUE(SelectObservations({}, 4).empty());
}

}  // namespace
}  // namespace hpo::sampler
