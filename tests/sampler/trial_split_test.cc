#include "sampler/trial_split.h"

#include <limits>
#include <set>

#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Trials numbered in the order they are added.
class Trials {
 public:
  int64_t Completed(std::vector<double> losses) {
    return Add({.state = TrialState::kCompleted, .losses = std::move(losses)}, 0.0);
  }
  int64_t Pruned(std::map<int64_t, double> values) {
    return Add({.state = TrialState::kPruned, .intermediate = std::move(values)}, 0.0);
  }
  int64_t Running() { return Add({.state = TrialState::kRunning}, 0.0); }
  int64_t Infeasible(double violation) { return Add({.state = TrialState::kPruned}, violation); }

  std::set<int64_t> Below(int64_t num_below) const {
    std::vector<JudgedTrial> judged;
    for (size_t i = 0; i < trials_.size(); ++i) judged.push_back({&trials_[i], violations_[i]});
    const TrialSplit split = SplitTrials(judged, num_below);
    EXPECT_EQ(split.below.size() + split.above.size(), trials_.size());
    ExpectByNumber(split.below);
    ExpectByNumber(split.above);
    std::set<int64_t> numbers;
    for (const HistoryTrial* trial : split.below) numbers.insert(trial->number.value);
    return numbers;
  }

 private:
  int64_t Add(HistoryTrial trial, double violation) {
    trial.number = TrialNumber{static_cast<int64_t>(trials_.size())};
    trials_.push_back(std::move(trial));
    violations_.push_back(violation);
    return trials_.back().number.value;
  }
  static void ExpectByNumber(const std::vector<const HistoryTrial*>& trials) {
    for (size_t i = 1; i < trials.size(); ++i) EXPECT_LT(trials[i - 1]->number, trials[i]->number);
  }

  std::vector<HistoryTrial> trials_;
  std::vector<double> violations_;
};

// The order of preference, with the trials added in the opposite order.
TEST(SplitTrials, GoodIsAPrefixOfTheOrderOfPreference) {
  Trials trials;
  std::vector<int64_t> order;
  const auto preferred_before = [&](int64_t number) { order.insert(order.begin(), number); };
  trials.Running();
  for (const double violation : {kInfinity, 2.0, 1.0})
    preferred_before(trials.Infeasible(violation));
  preferred_before(trials.Pruned({}));
  for (const int64_t step : {1, 2}) {
    // NaN is worth as little as infinity, so the older of the two is preferred.
    const int64_t infinite = trials.Pruned({{0, -5.0}, {step, kInfinity}});
    preferred_before(trials.Pruned({{0, -5.0}, {step, kNan}}));
    preferred_before(infinite);
    for (const double value : {1.0, 0.0, -kInfinity}) {
      preferred_before(trials.Pruned({{0, -5.0}, {step, value}}));
    }
  }
  for (const double loss : {kInfinity, 1.0, 0.0, -kInfinity}) {
    preferred_before(trials.Completed({loss}));
  }
  trials.Running();
  for (size_t n = 0; n <= order.size(); ++n) {
    SCOPED_TRACE(n);
    const std::set<int64_t> expected(order.begin(), order.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(trials.Below(static_cast<int64_t>(n)), expected);
  }
  EXPECT_EQ(trials.Below(1000), std::set<int64_t>(order.begin(), order.end()));
}

TEST(SplitTrials, TiesGoToTheOlderTrial) {
  Trials trials;
  for (int i = 0; i < 4; ++i) trials.Completed({0.5});
  EXPECT_EQ(trials.Below(2), (std::set<int64_t>{0, 1}));
}

TEST(SplitTrials, NothingIsGoodOfNothing) { EXPECT_TRUE(Trials().Below(3).empty()); }

TEST(SplitTrials, NanLossIsWorst) {
  Trials trials;
  trials.Completed({kNan});
  trials.Completed({5.0});
  EXPECT_EQ(trials.Below(1), (std::set<int64_t>{1}));
}

TEST(SplitTrials, SeveralObjectivesByNonDomination) {
  Trials trials;
  trials.Completed({2.0, 2.0});  // second front
  trials.Completed({0.0, 3.0});  // first
  trials.Completed({3.0, 3.0});  // third
  trials.Completed({1.0, 1.0});  // first
  EXPECT_EQ(trials.Below(2), (std::set<int64_t>{1, 3}));
  EXPECT_EQ(trials.Below(3), (std::set<int64_t>{0, 1, 3}));
}

TEST(NumBelow, IsATenthRoundedUpAndCapped) {
  const std::pair<int64_t, int64_t> cases[] = {{0, 0},    {1, 1},    {10, 1},   {11, 2},
                                               {100, 10}, {249, 25}, {251, 25}, {10'000, 25}};
  for (const auto& [n, expected] : cases) EXPECT_EQ(NumBelow(n), expected) << n;
}

}  // namespace
}  // namespace hpo
