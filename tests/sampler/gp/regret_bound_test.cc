#include "sampler/gp/regret_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

using ::testing::HasSubstr;

constexpr double kBraninOptimum = 0.39788735772973816;

SimulatedResult Branin(const ParamMap& params) {
  constexpr double kPi = 3.14159265358979323846;
  const double x = *FindDouble(params, "x");
  const double y = *FindDouble(params, "y");
  const double b = 5.1 / (4.0 * kPi * kPi);
  const double c = 5.0 / kPi;
  const double valley = y - b * x * x + c * x - 6.0;
  return valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * kPi)) * std::cos(x) + 10.0;
}

StudySpec BraninStudy(std::optional<double> gap, uint64_t seed = 0) {
  StudySpec study;
  study.name = "branin";
  study.objectives = {Objective{.metric = "loss", .direction = Direction::kMinimize}};
  study.sampler.type = "gp";
  study.sampler.seed = seed;
  study.budget.trials = 200;
  study.budget.regret_bound = RegretBound{.gap = gap};
  study.space.parameters = {MakeParameter("x", FloatDomain{.low = -5.0, .high = 10.0}),
                            MakeParameter("y", FloatDomain{.low = 0.0, .high = 15.0})};
  return study;
}

History HistoryOf(const std::vector<HistoryTrial>& trials) {
  History history;
  for (const HistoryTrial& trial : trials) {
    history.Apply({history.sequence() + 1, trial});
  }
  return history;
}

// How many trials a study runs before it ends, at most 200; its regret then.
std::pair<size_t, double> RunToEnd(const StudySpec& spec, SimulatedObjective objective) {
  SimulatedStudy study(spec, std::move(objective));
  while (study.trials().size() < 200 &&
         !WhyRegretBounded(HistoryOf(study.trials()), spec).has_value()) {
    study.RunOne();
  }
  return {study.trials().size(), study.best_loss() - kBraninOptimum};
}

TEST(RegretBound, EndsBraninNearItsOptimumLongBeforeTheBudget) {
  std::vector<double> counts;
  int num_beyond = 0;
  for (uint64_t seed = 1; seed <= 9; ++seed) {
    const auto [num_trials, regret] = RunToEnd(BraninStudy(0.1, seed), Branin);
    EXPECT_GE(num_trials, 20u);
    counts.push_back(static_cast<double>(num_trials));
    num_beyond += regret > 0.1 ? 1 : 0;
  }
  EXPECT_LE(MedianOf(counts), 100.0);
  EXPECT_LE(num_beyond, 1);
}

TEST(RegretBound, AutoGoesByTheNoise) {
  Rng noise(5, 5);
  const auto noisy = [&noise](const ParamMap& params) -> SimulatedResult {
    return *Branin(params).loss + 1.0 * (noise.Uniform() - 0.5);
  };
  const auto [num_trials, regret] = RunToEnd(BraninStudy(std::nullopt), noisy);
  EXPECT_LE(num_trials, 150u);
  EXPECT_LE(regret, 0.5);
}

TEST(RegretBound, GoesOnWhileImprovementIsLikely) {
  // Random trials leave much of the space unknown.
  StudySpec spec = BraninStudy(0.1);
  spec.sampler.type = "random";
  SimulatedStudy study(spec, Branin);
  for (int i = 0; i < 40; ++i) study.RunOne();
  const History history = HistoryOf(study.trials());
  EXPECT_EQ(WhyRegretBounded(history, spec), std::nullopt);
  const auto estimate = EstimateRegret(history, spec);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_GT(estimate->gap, study.best_loss() - kBraninOptimum) << "the bound holds";
}

TEST(RegretBound, SaysWhyInTheObjectivesUnit) {
  const StudySpec spec = BraninStudy(1e6);
  SimulatedStudy study(spec, Branin);
  for (int i = 0; i < 20; ++i) study.RunOne();
  const auto why = WhyRegretBounded(HistoryOf(study.trials()), spec);
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr("after 20 trials the model expects nothing better than the best by"));
  EXPECT_THAT(*why, HasSubstr("(budget.regret_bound 1e+06); to go on, lower budget.regret_bound"));
}

TEST(RegretBound, AFunctionOfTheHistoryAlone) {
  const StudySpec spec = BraninStudy(0.1);
  SimulatedStudy study(spec, Branin);
  for (int i = 0; i < 25; ++i) study.RunOne();
  std::vector<HistoryTrial> trials = study.trials();
  const auto estimate = EstimateRegret(HistoryOf(trials), spec);
  std::reverse(trials.begin(), trials.end());
  const auto again = EstimateRegret(HistoryOf(trials), spec);
  ASSERT_TRUE(estimate.has_value() && again.has_value());
  EXPECT_EQ(estimate->gap, again->gap);
  EXPECT_EQ(estimate->noise, again->noise);
}

TEST(RegretBound, NothingIsSaidOfTooLittle) {
  StudySpec spec = BraninStudy(1e6);
  SimulatedStudy study(spec, Branin);
  for (int i = 0; i < 19; ++i) study.RunOne();
  EXPECT_EQ(EstimateRegret(HistoryOf(study.trials()), spec), std::nullopt) << "19 trials";
  EXPECT_EQ(EstimateRegret({}, spec), std::nullopt);
  study.RunOne();
  EXPECT_TRUE(WhyRegretBounded(HistoryOf(study.trials()), spec).has_value());
  spec.budget.regret_bound.reset();
  EXPECT_EQ(WhyRegretBounded(HistoryOf(study.trials()), spec), std::nullopt) << "no bound asked";
}

TEST(RegretBound, LossesThatSayNothingEndNothing) {
  const StudySpec spec = BraninStudy(1e6);
  const auto ended = [&](const SimulatedObjective& objective) {
    SimulatedStudy study(spec, objective);
    for (int i = 0; i < 30; ++i) study.RunOne();
    return EstimateRegret(HistoryOf(study.trials()), spec).has_value();
  };
  EXPECT_FALSE(ended([](const ParamMap&) -> SimulatedResult { return 1.0; })) << "all equal";
  EXPECT_FALSE(ended([](const ParamMap&) -> SimulatedResult {
    return std::numeric_limits<double>::quiet_NaN();
  })) << "no numbers";
  EXPECT_FALSE(ended([](const ParamMap&) -> SimulatedResult { return std::optional<double>(); }))
      << "all out of memory";
}

}  // namespace
}  // namespace hpo::sampler
