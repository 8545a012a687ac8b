#include "sampler/priors/trial_split.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sampler/numeric/portable_math.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

// Finished trials numbered in the order they are added.
class SplitTrials {
 public:
  int64_t Completed(std::vector<double> losses) {
    return Add({.state = TrialState::kCompleted, .losses = std::move(losses)});
  }
  int64_t Pruned(std::map<int64_t, double> values) {
    return Add({.state = TrialState::kPruned, .intermediate = std::move(values)});
  }

  std::set<int64_t> Best(int64_t count) const {
    std::vector<const HistoryTrial*> finished;
    for (const HistoryTrial& trial : trials_) finished.push_back(&trial);
    const std::vector<TrialNumber> best = BestTrials(finished, count);
    EXPECT_TRUE(std::is_sorted(best.begin(), best.end()));
    std::set<int64_t> numbers;
    for (const TrialNumber number : best) numbers.insert(number.value);
    EXPECT_EQ(numbers.size(), best.size());
    return numbers;
  }

 private:
  int64_t Add(HistoryTrial trial) {
    trial.number = TrialNumber{static_cast<int64_t>(trials_.size())};
    trials_.push_back(std::move(trial));
    return trials_.back().number.value;
  }

  std::vector<HistoryTrial> trials_;
};

// The order of preference, with the trials added in the opposite order.
TEST(BestTrials, GoodIsAPrefixOfTheOrderOfPreference) {
  SplitTrials trials;
  std::vector<int64_t> order;
  const auto preferred_before = [&](int64_t number) { order.insert(order.begin(), number); };
  preferred_before(trials.Pruned({}));
  for (const int64_t step : {1, 2}) {
    // NaN is worth as little as infinity, so the older of the two is preferred.
    const int64_t infinite = trials.Pruned({{0, -5.0}, {step, kUnbounded}});
    preferred_before(trials.Pruned({{0, -5.0}, {step, kNoNumber}}));
    preferred_before(infinite);
    for (const double value : {1.0, 0.0, -kUnbounded}) {
      preferred_before(trials.Pruned({{0, -5.0}, {step, value}}));
    }
  }
  for (const double loss : {kUnbounded, 1.0, 0.0, -kUnbounded}) {
    preferred_before(trials.Completed({loss}));
  }
  for (size_t n = 0; n <= order.size(); ++n) {
    SCOPED_TRACE(n);
    const std::set<int64_t> expected(order.begin(), order.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(trials.Best(static_cast<int64_t>(n)), expected);
  }
  EXPECT_EQ(trials.Best(1000), std::set<int64_t>(order.begin(), order.end()));
}

TEST(BestTrials, TiesGoToTheOlderTrial) {
  SplitTrials trials;
  for (int i = 0; i < 4; ++i) trials.Completed({0.5});
  EXPECT_EQ(trials.Best(2), (std::set<int64_t>{0, 1}));
}

TEST(BestTrials, NothingIsGoodOfNothing) { EXPECT_TRUE(SplitTrials().Best(3).empty()); }

TEST(BestTrials, NanLossIsWorst) {
  SplitTrials trials;
  trials.Completed({kNoNumber});
  trials.Completed({5.0});
  EXPECT_EQ(trials.Best(1), (std::set<int64_t>{1}));
}

TEST(BestTrials, SeveralObjectivesByNonDomination) {
  SplitTrials trials;
  trials.Completed({2.0, 2.0});  // second front
  trials.Completed({0.0, 3.0});  // first
  trials.Completed({3.0, 3.0});  // third
  trials.Completed({1.0, 1.0});  // first
  EXPECT_EQ(trials.Best(2), (std::set<int64_t>{1, 3}));
  EXPECT_EQ(trials.Best(3), (std::set<int64_t>{0, 1, 3}));
}

TEST(BestTrials, TheCutFrontByHypervolume) {
  for (const nlohmann::json& c : ReadGolden("several_objectives.json")["splits"]) {
    SplitTrials trials;
    for (const nlohmann::json& losses : c["losses"]) trials.Completed(losses);
    const std::set<int64_t> good = c["good"];
    EXPECT_EQ(trials.Best(static_cast<int64_t>(good.size())), good) << c["losses"];
  }
}

TEST(BestTrials, PrunedTrialsComeAfterThoseOfSeveralObjectives) {
  SplitTrials trials;
  trials.Pruned({{1, -5.0}});
  trials.Completed({2.0, kNoNumber});
  trials.Completed({2.0});
  trials.Completed({2.0, 1.0});
  EXPECT_EQ(trials.Best(1), (std::set<int64_t>{3}));
  EXPECT_EQ(trials.Best(3), (std::set<int64_t>{1, 2, 3}));
  EXPECT_EQ(trials.Best(9), (std::set<int64_t>{0, 1, 2, 3}));
}

TEST(NumGood, IsAPartRoundedUpAndCapped) {
  const std::pair<int64_t, int64_t> cases[] = {{0, 0},    {1, 1},     {4, 1},     {5, 2},
                                               {100, 25}, {399, 100}, {401, 100}, {10'000, 100}};
  for (const auto& [n, expected] : cases) EXPECT_EQ(NumGood(n, 0, false), expected) << n;
  const std::pair<int64_t, int64_t> several[] = {{0, 0}, {11, 2}, {251, 26}, {10'000, 100}};
  for (const auto& [n, expected] : several) EXPECT_EQ(NumGood(n, 0, true), expected) << n;
}

TEST(NumGood, IsLessTheMoreRunBesideButNeverNothing) {
  struct Case {
    int64_t n;
    int64_t num_running;
    int64_t expected;
  };
  const Case cases[] = {{100, 1, 25},  {100, 3, 25}, {100, 12, 17},    {100, 21, 13},
                        {100, 63, 9},  {0, 63, 0},   {1, 63, 1},       {10'000, 3, 100},
                        {640, 63, 54}, {2, 63, 1},   {10'000, 63, 100}};
  for (const auto& [n, num_running, expected] : cases) {
    EXPECT_EQ(NumGood(n, num_running, false), expected) << n << " with " << num_running;
  }
}

TEST(WeightsOfGood, FallFromTheBestFasterTheMoreRunBeside) {
  const auto expect = [](int64_t num_running, double power) {
    SCOPED_TRACE(num_running);
    const std::vector<double> weights = WeightsOfGood(4, num_running);
    ASSERT_EQ(weights.size(), 4u);
    EXPECT_EQ(weights[0], 1.0);
    for (size_t i = 1; i < 4; ++i) {
      EXPECT_NEAR(weights[i], std::pow((4.0 - static_cast<double>(i)) / 4.0, power), 1e-14);
    }
  };
  expect(0, 3.0);
  expect(3, 3.0);
  expect(21, 6.0);
  expect(39, 9.0);
  expect(1'000'000, 9.0);
  EXPECT_TRUE(WeightsOfGood(0, 0).empty());
}

TEST(FewerBeside, AllBesideThreeHalfBesideTwentyOneAThirdBesideMany) {
  EXPECT_EQ(ShareBeside(0), 1.0);
  EXPECT_EQ(ShareBeside(3), 1.0);
  EXPECT_EQ(ShareBeside(12), 2.0 / 3.0);
  EXPECT_EQ(ShareBeside(21), 0.5);
  EXPECT_EQ(ShareBeside(39), 1.0 / 3.0);
  EXPECT_EQ(ShareBeside(1'000), 1.0 / 3.0);
  for (const int64_t count : {0, 1, 2, 31, 32, 1'000}) {
    EXPECT_EQ(FewerBeside(count, 0), count);
    EXPECT_EQ(FewerBeside(count, 3), count);
    EXPECT_EQ(FewerBeside(count, 21), (count + 1) / 2);
    for (int64_t num_running = 0; num_running < 500; ++num_running) {
      EXPECT_LE(FewerBeside(count, num_running + 1), FewerBeside(count, num_running));
    }
  }
}

}  // namespace
}  // namespace hpo::sampler
