// Studies whose file sets limits on metrics: the unconstrained optimum lies beyond them.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/priors/trial_split.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

using ::testing::HasSubstr;

constexpr int kTrials = 80;

StudySpec Square(const std::string& sampler, uint64_t seed) {
  StudySpec study;
  study.objectives = {{"loss", Direction::kMinimize}};
  study.constraints = {{.metric = "cost", .at_most = 1.0}};
  study.sampler = {.type = sampler, .seed = seed};
  study.space.parameters = {MakeParameter("x", FloatDomain{0.0, 1.0}),
                            MakeParameter("y", FloatDomain{0.0, 1.0})};
  return study;
}

// Least at (0.8, 0.8); with x + y <= limit at the middle of that line.
SimulatedObjective LossWithin(double limit) {
  return [limit](const ParamMap& params) {
    const double x = *FindDouble(params, "x");
    const double y = *FindDouble(params, "y");
    SimulatedResult result((x - 0.8) * (x - 0.8) + (y - 0.8) * (y - 0.8));
    result.excesses = {x + y - limit};
    return result;
  };
}

double LeastWithin(double limit) { return 2.0 * (0.8 - limit / 2.0) * (0.8 - limit / 2.0); }

int64_t NumViolating(const SimulatedStudy& study, size_t from) {
  return std::count_if(study.trials().begin() + static_cast<ptrdiff_t>(from), study.trials().end(),
                       [](const HistoryTrial& trial) { return trial.violation > 0.0; });
}

struct Expected {
  const char* sampler;
  double regret;           // in the median of the seeds
  double violating_share;  // of the last half
};

class ConstrainedSearch : public testing::TestWithParam<Expected> {};

TEST_P(ConstrainedSearch, EndsNearTheFeasibleOptimumAndSeldomBeyondIt) {
  constexpr double kLimit = 1.0;
  std::vector<double> regrets;
  int64_t violating = 0;
  constexpr uint64_t kSeeds = 8;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimulatedStudy study(Square(GetParam().sampler, seed), LossWithin(kLimit));
    while (study.trials().size() < kTrials) study.RunOne();
    regrets.push_back(study.best_loss() - LeastWithin(kLimit));
    violating += NumViolating(study, kTrials / 2);
  }
  EXPECT_LE(MedianOf(regrets), GetParam().regret);
  EXPECT_LE(static_cast<double>(violating) / (kSeeds * kTrials / 2), GetParam().violating_share);
}

// A search that knows nothing of the limit goes on at (0.8, 0.8).
INSTANTIATE_TEST_SUITE_P(Samplers, ConstrainedSearch,
                         testing::Values(Expected{"tpe", 0.02, 0.25}, Expected{"gp", 0.001, 0.1},
                                         Expected{"auto", 0.002, 0.2}),
                         [](const auto& test) { return std::string(test.param.sampler); });

TEST(ConstrainedStudy, FindsASmallFeasibleRegion) {
  constexpr double kLimit = 0.1;  // half a percent of the space
  for (const char* sampler : {"tpe", "gp", "cma-es", "auto"}) {
    SCOPED_TRACE(sampler);
    int found = 0;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SimulatedStudy study(Square(sampler, seed), LossWithin(kLimit));
      while (study.trials().size() < kTrials) study.RunOne();
      found += std::isfinite(study.best_loss()) ? 1 : 0;
    }
    EXPECT_GE(found, 4);
  }
}

// The ratio of feasible to violating trials has nothing to tell yet, and the split leads there.
TEST(ConstrainedStudy, TpeGoesWhereTheViolationIsLeastUntilATrialIsFeasible) {
  std::vector<double> trials_needed;
  for (uint64_t seed = 0; seed < 11; ++seed) {
    SimulatedStudy study(Square("tpe", seed), LossWithin(0.04));
    while (study.trials().size() < kTrials && !std::isfinite(study.best_loss())) study.RunOne();
    trials_needed.push_back(static_cast<double>(study.trials().size()));
  }
  EXPECT_LE(MedianOf(trials_needed), 40.0);
}

// Each trial misses the first limit, by less the smaller x; some miss the second too.
TEST(ConstrainedStudy, OfSeveralLimitsOneIsOutOfReach) {
  for (const char* sampler : {"tpe", "gp", "cma-es", "auto"}) {
    SCOPED_TRACE(sampler);
    StudySpec spec = Square(sampler, 1);
    spec.constraints.push_back({.metric = "time", .at_most = 1.0});
    SimulatedStudy study(spec, [](const ParamMap& params) {
      SimulatedResult result(*FindDouble(params, "x"));
      result.excesses = {0.5 + *FindDouble(params, "x"), 0.3 - *FindDouble(params, "y")};
      return result;
    });
    constexpr int kLast = 20;
    double violation = 0.0;
    for (int i = 0; i < kTrials; ++i) {
      const HistoryTrial& trial = study.RunOne();
      if (i >= kTrials - kLast) violation += trial.violation / kLast;
    }
    EXPECT_LE(violation, 0.7) << "half is the least, one the mean";
  }
}

TEST(ConstrainedStudy, SaysHowMuchConstraintsCounted) {
  for (const auto& [sampler, reason] : {std::pair{"tpe", ", constraints "},
                                        std::pair{"gp", "% likely not to miss cost at most 1"}}) {
    SimulatedStudy study(Square(sampler, 1), LossWithin(1.0));
    while (study.trials().size() < 30) study.RunOne();
    EXPECT_THAT(study.Suggest(30).reason, HasSubstr(reason));
  }
}

TEST(ConstrainedStudy, SaysThatNothingIsFeasibleYet) {
  SimulatedStudy study(Square("gp", 1), LossWithin(-0.5));
  while (study.trials().size() < 20) study.RunOne();
  EXPECT_THAT(study.Suggest(20).reason, HasSubstr("the violation of the constraints"));
}

// Metrics that nobody reports are violated without bound: there is nothing to learn from that.
TEST(ConstrainedStudy, GoesOnWhereTheMetricIsNeverReported) {
  for (const char* sampler : {"tpe", "gp", "cma-es", "auto"}) {
    SimulatedStudy study(Square(sampler, 2), [](const ParamMap& params) {
      SimulatedResult result(*FindDouble(params, "x"));
      result.excesses = {kUnbounded};
      return result;
    });
    while (study.trials().size() < 15) study.RunOne();
    EXPECT_EQ(NumViolating(study, 0), 15) << sampler;
  }
}

TEST(ConstrainedStudy, ASamplerBuiltAnewProposesTheSame) {
  for (const char* sampler : {"tpe", "gp", "cma-es", "auto"}) {
    SCOPED_TRACE(sampler);
    const StudySpec spec = Square(sampler, 3);
    SimulatedStudy study(spec, LossWithin(1.0));
    while (study.trials().size() < 40) study.RunOne();
    const auto rebuilt = MakeSampler(spec);
    for (const HistoryTrial& trial : study.trials()) {
      rebuilt->Observe({.sequence = trial.number.value + 1, .trial = trial});
    }
    const auto anew = rebuilt->Suggest({TrialNumber{40}, spec.space, GiB(16), nullptr});
    ASSERT_TRUE(anew.ok());
    EXPECT_EQ(anew->params, study.Suggest(40).params);
    EXPECT_EQ(anew->score, study.Suggest(40).score);
  }
}

HistoryTrial Ended(int64_t number, TrialState state, std::vector<double> losses,
                   double violation = 0.0) {
  HistoryTrial trial{.number = TrialNumber{number}, .state = state, .losses = std::move(losses)};
  trial.violation = violation;
  return trial;
}

std::vector<int64_t> Best(const std::vector<HistoryTrial>& trials, int64_t count) {
  std::vector<const HistoryTrial*> finished;
  for (const HistoryTrial& trial : trials) finished.push_back(&trial);
  std::vector<int64_t> numbers;
  for (const TrialNumber number : BestTrials(finished, count)) numbers.push_back(number.value);
  return numbers;
}

TEST(ConstrainedSplit, FeasibleTrialsComeFirstThenPrunedThenTheLeastViolating) {
  const std::vector<HistoryTrial> trials = {
      Ended(0, TrialState::kCompleted, {0.0}, kUnbounded),
      Ended(1, TrialState::kCompleted, {1.0}, 0.5),
      Ended(2, TrialState::kCompleted, {2.0}, 0.1),
      Ended(3, TrialState::kPruned, {}),
      Ended(4, TrialState::kCompleted, {9.0}),
  };
  EXPECT_EQ(Best(trials, 1), (std::vector<int64_t>{4}));
  EXPECT_EQ(Best(trials, 2), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(Best(trials, 3), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(Best(trials, 4), (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(ConstrainedSplit, OfSeveralObjectivesTheFrontIsTheFeasibleOnes) {
  const std::vector<HistoryTrial> trials = {
      Ended(0, TrialState::kCompleted, {0.0, 0.0}, 0.1),
      Ended(1, TrialState::kCompleted, {1.0, 2.0}),
      Ended(2, TrialState::kCompleted, {2.0, 1.0}),
  };
  EXPECT_EQ(Best(trials, 2), (std::vector<int64_t>{1, 2}));
}

TEST(ConstrainedHistory, HoldsWhatACompletedTrialExceeds) {
  const std::vector<MetricConstraint> constraints = {{.metric = "ms", .at_most = 50.0},
                                                     {.metric = "recall", .at_least = 0.5}};
  Trial trial;
  trial.state = TrialState::kCompleted;
  trial.outcome = Completed{.metrics = {{"ms", 75.0}, {"recall", 0.75}}};
  trial.violation = 0.5;
  const HistoryTrial seen = ToHistory(trial, {}, {{"loss", Direction::kMinimize}}, constraints);
  EXPECT_EQ(seen.violation, 0.5);
  EXPECT_EQ(seen.excesses, (std::vector<double>{0.5, -0.5}));
  EXPECT_FALSE(IsFeasible(seen));
}

}  // namespace
}  // namespace hpo::sampler
