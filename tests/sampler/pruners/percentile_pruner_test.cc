#include "sampler/pruners/percentile_pruner.h"

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// Folds trials given by their reports, in "smaller is better" sign.
class Reports {
 public:
  void Completed(std::map<int64_t, double> values) {
    Add(TrialState::kCompleted, std::move(values));
  }
  void Add(TrialState state, std::map<int64_t, double> values) {
    const TrialNumber number{static_cast<int64_t>(history_.trials().size())};
    history_.Apply(
        {number.value + 1, {.number = number, .state = state, .intermediate = std::move(values)}});
  }

  // Whether a further, running trial with `values` is stopped.
  std::optional<PruneDecision> Decide(std::map<int64_t, double> values,
                                      const PrunerSpec& spec = {.type = "median",
                                                                .startup_trials = 0},
                                      Direction direction = Direction::kMinimize) const {
    History with = history_;
    const TrialNumber asking{1000};
    with.Apply({1000, {.number = asking, .intermediate = std::move(values)}});
    return PercentilePruner(spec, direction).Decide(with, asking);
  }

 private:
  History history_;
};

TEST(PercentilePruner, NeverStopsTheFirstTrial) {
  EXPECT_FALSE(Reports().Decide({{1, 100.0}}).has_value());
  EXPECT_FALSE(Reports().Decide({{1, kNoNumber}}).has_value());
}

TEST(PercentilePruner, StopsWhatIsStrictlyWorseThanTheMedian) {
  Reports reports;
  for (const double value : {1.0, 2.0, 3.0}) reports.Completed({{1, value}});
  const std::pair<double, bool> cases[] = {{1.9, false}, {2.0, false}, {2.1, true}};
  for (const auto& [value, stopped] : cases) {
    EXPECT_EQ(reports.Decide({{1, value}}).has_value(), stopped) << value;
  }
}

TEST(PercentilePruner, AnEvenNumberHasItsMedianInTheMiddle) {
  Reports reports;
  for (const double value : {1.0, 4.0, 2.0, 3.0}) reports.Completed({{1, value}});
  EXPECT_FALSE(reports.Decide({{1, 2.5}}).has_value());
  EXPECT_TRUE(reports.Decide({{1, 2.6}}).has_value());
}

TEST(PercentilePruner, TheBestOfAllReportsCounts) {
  Reports reports;
  for (const double value : {1.0, 2.0, 3.0}) reports.Completed({{2, value}});
  EXPECT_FALSE(reports.Decide({{1, 0.5}, {2, 9.0}}).has_value());
  EXPECT_TRUE(reports.Decide({{1, 5.0}, {2, 9.0}}).has_value());
}

TEST(PercentilePruner, OnlyValuesAtExactlyTheStepAreCompared) {
  Reports reports;
  reports.Completed({{1, 0.0}, {3, 0.0}});
  EXPECT_FALSE(reports.Decide({{2, 9.0}}).has_value());
  EXPECT_TRUE(reports.Decide({{3, 9.0}}).has_value());
}

TEST(PercentilePruner, OnlyCompletedTrialsAreCompared) {
  Reports reports;
  for (const TrialState state : {TrialState::kPruned, TrialState::kRunning, TrialState::kFailed}) {
    reports.Add(state, {{1, 0.0}});
  }
  EXPECT_FALSE(reports.Decide({{1, 9.0}}).has_value());
}

TEST(PercentilePruner, WaitsForStartupTrials) {
  Reports reports;
  const PrunerSpec spec{.type = "median", .startup_trials = 2};
  reports.Completed({{1, 0.0}});
  EXPECT_FALSE(reports.Decide({{1, 9.0}}, spec).has_value());
  reports.Completed({{1, 0.0}});
  EXPECT_TRUE(reports.Decide({{1, 9.0}}, spec).has_value());
}

TEST(PercentilePruner, NanHandling) {
  Reports reports;
  reports.Completed({{1, 1.0}, {2, kNoNumber}, {3, kNoNumber}});
  reports.Completed({{1, 1.0}, {2, 1.0}, {3, kNoNumber}});
  EXPECT_TRUE(reports.Decide({{1, kNoNumber}}).has_value()) << "all of its own are NaN";
  EXPECT_FALSE(reports.Decide({{0, 0.5}, {1, kNoNumber}}).has_value()) << "one of its own is NaN";
  EXPECT_TRUE(reports.Decide({{2, 1.5}}).has_value()) << "NaN of others is left out";
  EXPECT_FALSE(reports.Decide({{3, 1.5}}).has_value()) << "no median";
}

// Steps at which a trial that reports every `report` steps is stopped when asked at each step, with
// warm-up W and interval I. All reports are worse than the median.
TEST(PercentilePruner, ChecksTheFirstReportOfEachInterval) {
  struct Case {
    int64_t warmup, interval, report;
    std::vector<int64_t> stopped;
  };
  const Case cases[] = {
      {0, 1, 1, {1, 2, 3, 4, 5, 6}},
      {2, 1, 1, {2, 3, 4, 5, 6}},
      {0, 3, 1, {1, 3, 6, 9}},
      {2, 3, 1, {2, 5, 8}},
      {2, 10, 3, {3, 4, 5, 12, 13, 14, 24, 25, 26}},
      {1, 2, 2, {2, 3, 4, 5, 6}},
      {5, 4, 6, {6, 7, 8, 9, 10, 11, 12, 13, 14}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(testing::Message()
                 << "W " << test.warmup << " I " << test.interval << " every " << test.report);
    Reports reports;
    std::map<int64_t, double> good;
    for (int64_t step = 1; step <= 30; ++step) good[step] = 0.0;
    reports.Completed(good);
    std::vector<int64_t> stopped;
    std::map<int64_t, double> values;
    for (int64_t step = 1; step <= test.stopped.back(); ++step) {
      if (step % test.report == 0) values[step] = 1.0;
      const PrunerSpec spec{
          .startup_trials = 0, .warmup_steps = test.warmup, .interval_steps = test.interval};
      if (reports.Decide(values, spec).has_value()) stopped.push_back(step);
    }
    EXPECT_EQ(stopped, test.stopped);
  }
}

TEST(PercentilePruner, SaysWhyInTheUsersSign) {
  Reports reports;
  for (const double loss : {-0.5, -0.6, -0.7}) reports.Completed({{200, loss}});
  const auto decision =
      reports.Decide({{200, -0.41}}, {.type = "median", .startup_trials = 0}, Direction::kMaximize);
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ(decision->pruner, "median");
  EXPECT_EQ(decision->step, 200);
  EXPECT_EQ(decision->why, "best 0.41 up to step 200; the median of 3 trials is 0.6");
}

TEST(PercentilePruner, UnknownOrSilentTrialsGoOn) {
  Reports reports;
  reports.Completed({{1, 0.0}});
  EXPECT_FALSE(reports.Decide({}).has_value());
  const PercentilePruner pruner({.type = "median", .startup_trials = 0}, Direction::kMinimize);
  EXPECT_FALSE(pruner.Decide({}, TrialNumber{7}).has_value());
}

TEST(PercentilePruner, KeepsTheBestShare) {
  Reports reports;
  for (const double value : {1.0, 2.0, 3.0, 4.0, 5.0}) reports.Completed({{1, value}});
  struct Case {
    double percentile;
    Direction direction;
    double loss;
    bool stopped;
  };
  // Of losses 1 ... 5, the best 25 % end at 2.
  const Case cases[] = {
      {25.0, Direction::kMinimize, 2.0, false},  {25.0, Direction::kMinimize, 2.1, true},
      {25.0, Direction::kMaximize, 2.0, false},  {25.0, Direction::kMaximize, 2.1, true},
      {0.0, Direction::kMinimize, 1.0, false},   {0.0, Direction::kMinimize, 1.1, true},
      {100.0, Direction::kMinimize, 5.0, false}, {100.0, Direction::kMinimize, 5.1, true},
      {90.0, Direction::kMinimize, 4.6, false},  {90.0, Direction::kMinimize, 4.7, true},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(testing::Message() << test.percentile << " % " << test.loss);
    const PrunerSpec spec{.type = "percentile", .startup_trials = 0, .percentile = test.percentile};
    const auto decision = reports.Decide({{1, test.loss}}, spec, test.direction);
    EXPECT_EQ(decision.has_value(), test.stopped);
    if (decision.has_value()) {
      EXPECT_EQ(decision->pruner, "percentile");
    }
  }
}

TEST(PercentilePruner, WaitsForEnoughTrialsAtTheStep) {
  Reports reports;
  const PrunerSpec spec{.type = "median", .startup_trials = 0, .min_trials = 2};
  reports.Completed({{1, 0.0}, {2, 0.0}});
  reports.Completed({{2, kNoNumber}});
  EXPECT_FALSE(reports.Decide({{1, 9.0}}, spec).has_value());
  EXPECT_TRUE(reports.Decide({{2, 9.0}}, spec).has_value()) << "NaN counts as a report";
}

TEST(PercentilePruner, SaysWhichShareItKeeps) {
  Reports reports;
  for (const double value : {1.0, 2.0, 3.0, 4.0, 5.0}) reports.Completed({{7, value}});
  const PrunerSpec spec{.type = "percentile", .startup_trials = 0};
  EXPECT_EQ(reports.Decide({{7, 9.0}}, spec)->why,
            "best 9 up to step 7; the best 25 % of 5 trials end at 2");
}

}  // namespace
}  // namespace hpo::sampler
