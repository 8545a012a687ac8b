#include "sampler/priors/prior_study.h"

#include <cmath>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/numeric/portable_math.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

TEST(PriorWorth, IsTheRankCorrelationLessWhatChanceBrings) {
  const std::vector<double> losses = {3.0, 1.0, 4.0, 1.5, 9.0, 2.6};
  EXPECT_DOUBLE_EQ(PriorWorth(losses, losses), 1.0);
  // Another scale, another order of magnitude: the same order.
  EXPECT_DOUBLE_EQ(PriorWorth(std::vector<double>{30.0, -7.0, 31.0, 0.0, 1e300, 29.0}, losses),
                   1.0);
  EXPECT_EQ(PriorWorth(std::vector<double>{-3.0, -1.0, -4.0, -1.5, -9.0, -2.6}, losses), 0.0);
  EXPECT_EQ(PriorWorth(std::vector<double>(6, 1.0), losses), 0.0) << "says nothing";
  // One neighbouring pair of six the other way round: r = 1 - 6 * 2 / (6 * 35) = 33/35.
  const double r = 33.0 / 35.0;
  const std::vector<double> swapped = {4.0, 1.0, 3.0, 1.5, 9.0, 2.6};
  EXPECT_DOUBLE_EQ(PriorWorth(swapped, losses), r * (1.0 - (1.0 - r * r) / (r * r * 4.0)));
}

TEST(PriorWorth, TooFewOrWeakEvidenceIsNone) {
  const std::vector<double> three = {1.0, 2.0, 3.0};
  EXPECT_EQ(PriorWorth(three, three), 0.0);
  EXPECT_EQ(PriorWorth({}, {}), 0.0);
  // r = 0.4 among four is less than a standard error from 0.
  EXPECT_EQ(
      PriorWorth(std::vector<double>{2.0, 1.0, 4.0, 3.0}, std::vector<double>{1.0, 4.0, 2.0, 3.0}),
      0.0);
}

TEST(PriorWorth, ValuesThatAreNotFiniteAreTheWorst) {
  const std::vector<double> losses = {1.0, kNoNumber, 2.0, kUnbounded, 3.0, -kUnbounded};
  EXPECT_DOUBLE_EQ(PriorWorth(std::vector<double>{1.0, 9.0, 2.0, 9.0, 3.0, 9.0}, losses), 1.0);
}

SearchSpace LineSpace() {
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0})};
  return space;
}

// Trials at x = 0, 0.01, ..., of which those around `best` are the best.
PriorStudy LinePrior(double best, int64_t count = 100) {
  PriorStudy prior{.name = "earlier", .history = {}};
  for (int64_t i = 0; i < count; ++i) {
    const double x = 0.01 * static_cast<double>(i);
    prior.history.Apply({i + 1,
                         {.number = TrialNumber{i},
                          .params = {{"x", x}},
                          .state = TrialState::kCompleted,
                          .losses = {std::abs(x - best)}}});
  }
  return prior;
}

TEST(SuggestFromPriors, GoesFromTheBestOverTheBetterHalf) {
  const std::vector<PriorStudy> priors = {LinePrior(0.0)};
  const SearchSpace space = LineSpace();
  History history;
  std::vector<double> proposed;
  for (int64_t number = 0; number < 12; ++number) {
    const AskContext context{TrialNumber{number}, space, GiB(16), nullptr};
    const auto suggestion = SuggestFromPriors(context, history, priors);
    EXPECT_EQ(suggestion.has_value(), number % 2 == 0 && number < 10) << number;
    if (!suggestion.has_value()) continue;
    proposed.push_back(*FindDouble(suggestion->params, "x"));
    history.Apply({number + 1, {.number = context.number, .params = suggestion->params}});
  }
  EXPECT_THAT(proposed, ::testing::ElementsAre(0.0, 0.1, 0.2, 0.3, 0.4));
}

TEST(SuggestFromPriors, SaysWhereAProposalIsFromAndTakesPriorsInTurns) {
  std::vector<PriorStudy> priors = {LinePrior(0.0), LinePrior(0.5)};
  priors[1].name = "other";
  const SearchSpace space = LineSpace();
  const auto first = SuggestFromPriors({TrialNumber{0}, space, GiB(16), nullptr}, {}, priors);
  const auto second = SuggestFromPriors({TrialNumber{2}, space, GiB(16), nullptr}, {}, priors);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->sampler, "trial #0 of earlier");
  EXPECT_EQ(second->sampler, "trial #50 of other");
}

TEST(SuggestFromPriors, PassesOverWhatWasTriedIsOutsideOrDoesNotFit) {
  const std::vector<PriorStudy> priors = {LinePrior(0.0)};
  SearchSpace space = LineSpace();
  History history;
  history.Apply({1, {.number = TrialNumber{0}, .params = {{"x", 0.02}}}});
  space.parameters[0].domain = FloatDomain{.low = 0.01, .high = 1.0};
  const memory::BatchFeasibility above = [](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = *FindDouble(params, "x") > 0.015, .needed = Bytes{1}});
    }
    return fits;
  };
  const auto suggestion =
      SuggestFromPriors({TrialNumber{0}, space, GiB(16), above}, history, priors);
  ASSERT_TRUE(suggestion.has_value());
  EXPECT_DOUBLE_EQ(*FindDouble(suggestion->params, "x"), 0.03);
  space.parameters[0].name = "y";
  EXPECT_FALSE(
      SuggestFromPriors({TrialNumber{0}, space, GiB(16), nullptr}, {}, priors).has_value());
  EXPECT_FALSE(SuggestFromPriors({TrialNumber{0}, space, GiB(16), nullptr}, {},
                                 std::vector<PriorStudy>{{"empty", {}}})
                   .has_value());
}

// ---- Every sampler that learns ----

class WarmStart : public ::testing::TestWithParam<const char*> {
 protected:
  static StudySpec Study(uint64_t seed) {
    StudySpec study;
    study.name = "now";
    study.objectives = {Objective{.metric = "loss", .direction = Direction::kMinimize}};
    study.sampler.type = GetParam();
    study.sampler.seed = seed;
    for (const char* name : {"a", "b", "c", "d"}) {
      study.space.parameters.push_back(MakeParameter(name, FloatDomain{.low = 0.0, .high = 1.0}));
    }
    return study;
  }

  // A bowl around (0.7, 0.7, 0.7, 0.7) + shift.
  static SimulatedObjective Bowl(double shift, double scale) {
    return [shift, scale](const ParamMap& params) -> SimulatedResult {
      double sum = 0.0;
      for (const auto& [name, value] : params) {
        sum += std::pow(*FindDouble(params, name) - 0.7 - shift, 2);
      }
      return 5.0 + scale * sum;
    };
  }

  static PriorStudy Earlier(double shift, double scale, int num_trials = 60) {
    SimulatedStudy earlier(Study(77), Bowl(shift, scale));
    for (int i = 0; i < num_trials; ++i) earlier.RunOne();
    PriorStudy prior{.name = "earlier", .history = {}};
    for (const HistoryTrial& trial : earlier.trials()) prior.history.Apply({1, trial});
    return prior;
  }

  // The median over seeds of the regret after some trials.
  static double Regret(const std::vector<PriorStudy>& priors, int num_trials) {
    std::vector<double> regrets;
    for (uint64_t seed = 0; seed < 7; ++seed) {
      SimulatedStudy study(Study(seed), Bowl(0.0, 1.0), GiB(16), priors);
      for (int i = 0; i < num_trials; ++i) study.RunOne();
      regrets.push_back(study.best_loss() - 5.0);
    }
    return MedianOf(regrets);
  }
};

TEST_P(WarmStart, AGoodPriorWinsClearly) {
  EXPECT_LT(Regret({Earlier(0.03, 20.0)}, 11), 0.3 * Regret({}, 11));
}

TEST_P(WarmStart, AMisleadingPriorCostsLittle) {
  EXPECT_LT(Regret({Earlier(0.0, -1.0)}, 40), 2.5 * Regret({}, 40) + 1e-4);
}

TEST_P(WarmStart, OfTwoTheOneThatIsRightCounts) {
  std::vector<PriorStudy> priors = {Earlier(0.0, -1.0), Earlier(0.0, 3.0)};
  priors[1].name = "right";
  SimulatedStudy study(Study(3), Bowl(0.0, 1.0), GiB(16), priors);
  for (int i = 0; i < 14; ++i) study.RunOne();
  const Suggestion suggestion = study.Suggest(14);
  EXPECT_THAT(suggestion.sampler, ::testing::HasSubstr("prior right "));
  EXPECT_EQ(absl::StrContains(suggestion.reason, ", prior "), std::string(GetParam()) == "tpe");
}

TEST_P(WarmStart, APriorThatIsWorthNothingIsNotHeard) {
  SimulatedStudy study(Study(1), Bowl(0.0, 1.0), GiB(16), {Earlier(0.0, -1.0)});
  EXPECT_TRUE(absl::StrContains(study.Suggest(0).sampler, " of earlier"));
  for (int i = 0; i < 14; ++i) study.RunOne();
  EXPECT_FALSE(absl::StrContains(study.Suggest(14).sampler, "earlier"));
}

TEST_P(WarmStart, ARebuiltSamplerProposesTheSame) {
  const StudySpec spec = Study(5);
  const std::vector<PriorStudy> priors = {Earlier(0.05, 2.0, 30)};
  SimulatedStudy running(spec, Bowl(0.0, 1.0), GiB(16), priors);
  for (int i = 0; i < 25; ++i) running.RunOne();
  const auto rebuilt = MakeSampler(spec, priors);
  for (auto trial = running.trials().rbegin(); trial != running.trials().rend(); ++trial) {
    rebuilt->Observe({25, *trial});
  }
  const auto again = rebuilt->Suggest({TrialNumber{25}, spec.space, GiB(16), nullptr});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->params, running.Suggest(25).params);
  EXPECT_EQ(again->score, running.Suggest(25).score);
  EXPECT_EQ(again->sampler, running.Suggest(25).sampler);
}

TEST_P(WarmStart, PriorsThatTeachNothingChangeNothing) {
  const StudySpec spec = Study(5);
  PriorStudy elsewhere{.name = "elsewhere", .history = {}};
  elsewhere.history.Apply({1,
                           {.number = TrialNumber{0},
                            .params = {{"unknown", 0.5}},
                            .state = TrialState::kCompleted,
                            .losses = {kNoNumber}}});
  SimulatedStudy with(spec, Bowl(0.0, 1.0), GiB(16), {elsewhere, {"empty", {}}});
  SimulatedStudy without(spec, Bowl(0.0, 1.0));
  for (int i = 0; i < 14; ++i) EXPECT_EQ(with.RunOne().params, without.RunOne().params) << i;
}

// Trials that another program ran count as the study's own, for startup and for the model.
TEST_P(WarmStart, ImportedTrialsCount) {
  const StudySpec spec = Study(3);
  SimulatedStudy ran(spec, Bowl(0.0, 1.0));
  for (int i = 0; i < 12; ++i) ran.RunOne();
  const auto imported = MakeSampler(spec);
  for (HistoryTrial trial : ran.trials()) {
    trial.budgeted = false;
    imported->Observe({12, trial});
  }
  const auto suggestion = imported->Suggest({TrialNumber{12}, spec.space, GiB(16), nullptr});
  ASSERT_TRUE(suggestion.ok());
  EXPECT_TRUE(suggestion->score.has_value()) << suggestion->sampler;
  EXPECT_EQ(suggestion->params, ran.Suggest(12).params);
}

INSTANTIATE_TEST_SUITE_P(Samplers, WarmStart, ::testing::Values("auto", "gp", "tpe"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace hpo::sampler
