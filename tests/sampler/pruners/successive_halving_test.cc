#include "sampler/pruners/successive_halving.h"

#include <limits>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/pruners/asha_pruner.h"
#include "sampler/pruners/hyperband_pruner.h"

namespace hpo::sampler {
namespace {

using Values = std::map<int64_t, double>;

class HalvedTrials {
 public:
  TrialNumber Add(Values values, TrialState state = TrialState::kRunning,
                  std::optional<PruneReason> reason = std::nullopt) {
    const TrialNumber number{static_cast<int64_t>(history_.trials().size())};
    history_.Apply({number.value + 1,
                    {.number = number,
                     .state = state,
                     .prune_reason = reason,
                     .intermediate = std::move(values)}});
    return number;
  }

  // Whether a further running trial with `values` stops, and why.
  std::optional<PruneDecision> Decide(Values values, const PrunerSpec& spec,
                                      Direction direction = Direction::kMinimize) const {
    HalvedTrials with = *this;
    const TrialNumber asking = with.Add(std::move(values));
    return AshaPruner(spec, direction).Decide(with.history_, asking);
  }

  const History& history() const { return history_; }

 private:
  History history_;
};

constexpr PrunerSpec Halves() {
  PrunerSpec spec;
  spec.min_resource = 1;
  spec.reduction_factor = 2;
  return spec;
}

TEST(SuccessiveHalving, TheFirstTrialGoesOn) {
  Values values;
  for (int64_t step = 1; step <= 10; ++step) {
    values[step] = 1.0;
    EXPECT_FALSE(HalvedTrials().Decide(values, Halves()).has_value()) << step;
  }
}

TEST(SuccessiveHalving, ALaterTrialGoesAsFarAsItIsAmongTheBest) {
  HalvedTrials trials;
  for (const double value : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}) {
    trials.Add({{1, value}, {2, value}, {4, value}, {8, value}});
  }
  // Of eight trials four go on at each rung.
  const std::pair<double, int64_t> cases[] = {{0.75, 1}, {0.45, 1}, {0.4, 0}, {0.05, 0}};
  for (const auto& [value, stopped_at] : cases) {
    SCOPED_TRACE(value);
    Values values;
    int64_t first_stop = 0;
    for (int64_t step = 1; step <= 8 && first_stop == 0; ++step) {
      values[step] = value;
      if (trials.Decide(values, Halves()).has_value()) first_stop = step;
    }
    EXPECT_EQ(first_stop, stopped_at);
  }
}

TEST(SuccessiveHalving, DecidesOnlyWhereARungEnds) {
  HalvedTrials trials;
  trials.Add({{1, 0.0}, {2, 0.0}, {4, 0.0}});
  EXPECT_TRUE(trials.Decide({{4, 9.0}}, Halves()).has_value());
  EXPECT_FALSE(trials.Decide({{1, 0.0}, {2, 0.0}, {3, 9.0}}, Halves()).has_value());
  EXPECT_FALSE(trials.Decide({{1, 0.0}, {2, 0.0}, {4, 0.0}, {5, 9.0}}, Halves()).has_value());
  EXPECT_FALSE(trials.Decide({{0, 9.0}}, Halves()).has_value());
}

TEST(SuccessiveHalving, NanStopsAtARungsEndOnly) {
  EXPECT_TRUE(HalvedTrials().Decide({{1, kNoNumber}}, Halves()).has_value());
  EXPECT_FALSE(HalvedTrials().Decide({{1, 0.0}, {2, 0.0}, {3, kNoNumber}}, Halves()).has_value());
  EXPECT_EQ(HalvedTrials().Decide({{1, 0.0}, {3, kNoNumber}}, Halves())->why,
            "end of rung 1 (step 2): no finite value");
}

TEST(SuccessiveHalving, TrialsOfEveryStateCompeteByTheValueTheyHadAtTheRung) {
  for (const TrialState state : {TrialState::kRunning, TrialState::kCompleted, TrialState::kPruned,
                                 TrialState::kFailed, TrialState::kCancelled}) {
    HalvedTrials trials;
    trials.Add({{1, 0.1}, {2, 9.0}}, state);
    EXPECT_TRUE(trials.Decide({{1, 0.2}}, Halves()).has_value());
    EXPECT_FALSE(trials.Decide({{1, 0.1}}, Halves()).has_value()) << "ties go on";
  }
  HalvedTrials trials;
  trials.Add({{1, kNoNumber}, {2, 0.0}});
  EXPECT_FALSE(trials.Decide({{1, 0.2}, {2, 0.2}}, Halves()).has_value())
      << "NaN at a rung is out of the later ones";
}

TEST(SuccessiveHalving, AStoppedTrialsLastReportCountsForOneRung) {
  const Values both_rungs = {{2, 0.1}};
  HalvedTrials stopped;
  stopped.Add(both_rungs, TrialState::kPruned, PruneReason::kPruner);
  EXPECT_FALSE(stopped.Decide({{1, 0.0}, {2, 0.2}}, Halves()).has_value());
  HalvedTrials ran_out;
  ran_out.Add(both_rungs, TrialState::kPruned, PruneReason::kOutOfMemory);
  EXPECT_TRUE(ran_out.Decide({{1, 0.0}, {2, 0.2}}, Halves()).has_value());
}

TEST(SuccessiveHalving, RungsMayBeLeftOutAndFirstTrialsStopped) {
  HalvedTrials trials;
  trials.Add({{1, 0.0}, {2, 0.0}});
  PrunerSpec later = Halves();
  later.min_early_stopping_rate = 1;
  EXPECT_FALSE(trials.Decide({{1, 9.0}}, later).has_value());
  EXPECT_TRUE(trials.Decide({{1, 9.0}, {2, 9.0}}, later).has_value());

  PrunerSpec bootstrap = Halves();
  bootstrap.bootstrap_count = 2;
  const auto stop = trials.Decide({{1, -1.0}}, bootstrap);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->why, "end of rung 0 (step 1): one of the first 2 trials there, which all stop");
  trials.Add({{1, 0.5}});
  EXPECT_FALSE(trials.Decide({{1, -1.0}}, bootstrap).has_value());
}

TEST(SuccessiveHalving, WithoutAFirstResourceTheLongestCompletedTrialTells) {
  PrunerSpec automatic;
  automatic.reduction_factor = 2;
  HalvedTrials trials;
  trials.Add({{1, 0.0}, {3, 0.0}, {1000, 0.0}});
  EXPECT_FALSE(trials.Decide({{3, 9.0}}, automatic).has_value()) << "none has completed";
  trials.Add({{3, 0.0}, {500, 0.0}}, TrialState::kCompleted);
  EXPECT_FALSE(trials.Decide({{4, 9.0}}, automatic).has_value()) << "a hundredth is 5";
  EXPECT_TRUE(trials.Decide({{5, 9.0}}, automatic).has_value());
  HalvedTrials brief;
  brief.Add({{7, 0.0}}, TrialState::kCompleted);
  EXPECT_TRUE(brief.Decide({{1, 9.0}}, automatic).has_value()) << "at least 1";
}

TEST(SuccessiveHalving, SaysWhyInTheUsersSign) {
  HalvedTrials trials;
  for (const double loss : {-0.9, -0.8, -0.7}) trials.Add({{1, loss}, {2, loss}});
  const auto stop = trials.Decide({{1, -0.85}, {2, -0.5}}, Halves(), Direction::kMaximize);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->pruner, "asha");
  EXPECT_EQ(stop->step, 2);
  EXPECT_EQ(stop->why, "end of rung 1 (step 2): 0.5, and the best 2 of 4 trials there end at 0.8");
}

TEST(SuccessiveHalving, RungsEndBeforeTheNumbersDo) {
  HalvedTrials trials;
  PrunerSpec spec = Halves();
  spec.reduction_factor = std::numeric_limits<int64_t>::max();
  spec.min_early_stopping_rate = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(trials.Decide({{std::numeric_limits<int64_t>::max(), 9.0}}, spec).has_value());
}

TEST(Hyperband, BracketsHaveTheirShares) {
  EXPECT_EQ(BracketWeights(1, 9, 3), (std::vector<int64_t>{9, 5, 3}));
  EXPECT_EQ(BracketWeights(1, 81, 3), (std::vector<int64_t>{81, 34, 15, 8, 5}));
  EXPECT_EQ(BracketWeights(4, 7, 2), (std::vector<int64_t>{1}));
  EXPECT_EQ(BracketWeights(1, 1, 3), (std::vector<int64_t>{1}));
  EXPECT_EQ(BracketWeights(5, 2, 3), (std::vector<int64_t>{1})) << "a short trial ran first";
}

TEST(Hyperband, DealsTrialsByAStableHash) {
  // zlib.crc32(b"study_<n>") % 17, walked through 9, 5, 3.
  const std::vector<int64_t> weights = {9, 5, 3};
  const std::vector<int64_t> expected = {0, 0, 1, 2, 0, 0, 0, 1, 1, 0, 0, 1, 2, 2, 0, 1};
  for (size_t n = 0; n < expected.size(); ++n) {
    EXPECT_EQ(BracketOf("study", TrialNumber{static_cast<int64_t>(n)}, weights), expected[n]) << n;
  }
}

TEST(Hyperband, OnlyTrialsOfTheBracketCompete) {
  PrunerSpec spec;
  spec.max_resource = 9;
  const HyperbandPruner pruner(spec, Direction::kMinimize, "study");
  const std::vector<int64_t> weights = BracketWeights(1, 9, 3);
  int64_t num_stopped = 0;
  for (int64_t other = 0; other < 20; ++other) {
    History history;
    const TrialNumber asking{20};
    const int64_t bracket = BracketOf("study", asking, weights);
    // Rung 0 of bracket b ends at 3^b.
    const int64_t end = bracket == 0 ? 1 : bracket == 1 ? 3 : 9;
    history.Apply({1, {.number = TrialNumber{other}, .intermediate = {{end, 0.0}}}});
    history.Apply({2, {.number = asking, .intermediate = {{end, 1.0}}}});
    const auto stop = pruner.Decide(history, asking);
    EXPECT_EQ(stop.has_value(), BracketOf("study", TrialNumber{other}, weights) == bracket);
    if (!stop.has_value()) continue;
    ++num_stopped;
    EXPECT_EQ(stop->pruner, "hyperband");
    EXPECT_EQ(stop->why.substr(0, 11), "bracket " + std::to_string(bracket) + ", ");
  }
  EXPECT_GT(num_stopped, 0);
  EXPECT_LT(num_stopped, 20);
}

TEST(Hyperband, WithoutALastResourceItWaitsForACompletedTrial) {
  PrunerSpec spec;
  const HyperbandPruner pruner(spec, Direction::kMinimize, "study");
  History history;
  for (int64_t number = 0; number < 8; ++number) {
    history.Apply({number, {.number = TrialNumber{number}, .intermediate = {{1, double(number)}}}});
  }
  EXPECT_FALSE(pruner.Decide(history, TrialNumber{7}).has_value());
  history.Apply({9,
                 {.number = TrialNumber{8},
                  .state = TrialState::kCompleted,
                  .losses = {0.0},
                  .intermediate = {{1, 0.0}}}});
  // The longest trial has one step: one bracket, in which all compete.
  EXPECT_TRUE(pruner.Decide(history, TrialNumber{7}).has_value());
}

}  // namespace
}  // namespace hpo::sampler
