#include "sampler/gp/gp_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/gp/quality_points.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

double X(const ParamMap& params, const char* name) { return *FindDouble(params, name); }

StudySpec StudyOf(std::vector<Parameter> parameters, uint64_t seed = 0) {
  StudySpec study;
  study.sampler = {.type = "gp", .seed = seed};
  study.memory.policy = MemoryPolicy::kOff;
  study.space.parameters = std::move(parameters);
  return study;
}

StudySpec Square(uint64_t seed = 0) {
  return StudyOf({MakeParameter("x", FloatDomain{}), MakeParameter("y", FloatDomain{})}, seed);
}

std::optional<double> Bowl(const ParamMap& params) {
  return std::pow(X(params, "x") - 0.3, 2) + 3.0 * std::pow(X(params, "y") - 0.8, 2);
}

// Tells `sampler` of so many completed trials at random places of the square.
void ObserveRandomTrials(Sampler& sampler, int64_t count, Rng rng,
                         const std::function<double(const ParamMap&)>& loss) {
  for (int64_t i = 0; i < count; ++i) {
    const ParamMap params = {{"x", rng.Uniform()}, {"y", rng.Uniform()}};
    sampler.Observe({i + 1,
                     {.number = TrialNumber{i},
                      .params = params,
                      .state = TrialState::kCompleted,
                      .losses = {loss(params)}}});
  }
}

double BowlLoss(const ParamMap& params) { return *Bowl(params); }

TEST(FitPoint, FollowsTheCountInStepsOfASixteenth) {
  const std::pair<size_t, size_t> cases[] = {{0, 0},     {1, 1},     {32, 32},   {33, 32},
                                             {34, 34},   {63, 62},   {64, 64},   {67, 64},
                                             {100, 100}, {127, 124}, {500, 496}, {513, 512}};
  for (const auto& [count, expected] : cases) EXPECT_EQ(FitPoint(count), expected) << count;
  for (size_t count = 1; count < 3000; ++count) {
    ASSERT_LE(FitPoint(count), count);
    ASSERT_GE(FitPoint(count), FitPoint(count - 1));
    ASSERT_LE(count - FitPoint(count), count / 16);
  }
}

TEST(GpSampler, ReachesTheMinimumOfABowlInThirtyTrials) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SimulatedStudy study(Square(seed), Bowl);
    for (int i = 0; i < 30; ++i) study.RunOne();
    EXPECT_LT(study.best_loss(), 1e-5) << seed;
    const Suggestion next = study.Suggest(30);
    EXPECT_EQ(next.sampler, "gp");
    ASSERT_TRUE(next.score.has_value());
    EXPECT_TRUE(std::isfinite(*next.score));
  }
}

// The best configuration is the only good one of its branch's parameters.
TEST(GpSampler, ReachesTheMinimumOfAMixedConditionalSpace) {
  CategoricalDomain optimizers;
  for (const char* name : {"sgd", "adam", "adagrad"}) {
    optimizers.choices.push_back(std::string(name));
  }
  std::vector<double> losses;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    StudySpec study_spec =
        StudyOf({MakeParameter("opt", optimizers),
                 MakeParameter("lr", FloatDomain{.low = 1e-5, .high = 1.0, .log = true}),
                 MakeParameter("momentum", FloatDomain{.low = 0.0, .high = 1.0}),
                 MakeParameter("layers", IntDomain{.low = 1, .high = 12})},
                seed);
    study_spec.space.parameters[2].when = {{"opt", {std::string("sgd")}}};
    SimulatedStudy study(study_spec, [](const ParamMap& params) -> std::optional<double> {
      const double rate = std::pow(std::log10(X(params, "lr")) + 2.0, 2);
      const double layers = std::abs(X(params, "layers") - 7.0);
      const double branch =
          params.contains("momentum") ? 4.0 * std::pow(X(params, "momentum") - 0.9, 2) : 0.5;
      return rate + 0.1 * layers + branch;
    });
    for (int i = 0; i < 60; ++i) study.RunOne();
    losses.push_back(study.best_loss());
  }
  EXPECT_LT(MedianOf(losses), 0.01);
}

// Two basins along each of five axes, the worse ones wider: one trial in a basin of one axis tells
// of it wherever the other axes are.
TEST(GpSampler, FindsTheBestOfManyBasinsOfASum) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 5; ++i) {
    parameters.push_back(
        MakeParameter(absl::StrCat("x", i), FloatDomain{.low = -5.0, .high = 5.0}));
  }
  // Styblinski and Tang 1990.
  const auto loss = [](const ParamMap& params) -> std::optional<double> {
    double sum = 0.0;
    for (const auto& [name, value] : params) {
      const double x = X(params, name.c_str());
      sum += 0.5 * (std::pow(x, 4) - 16.0 * x * x + 5.0 * x);
    }
    return sum;
  };
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SimulatedStudy study(StudyOf(parameters, seed), loss);
    for (int i = 0; i < 120; ++i) study.RunOne();
    EXPECT_LT(study.best_loss(), -195.8) << "the next basin has -181.7, seed " << seed;
  }
}

TEST(GpSampler, EnormousLossesDoNotHideTheGoodOnes) {
  SimulatedStudy study(Square(2), [](const ParamMap& params) -> std::optional<double> {
    return std::exp(12.0 * *Bowl(params));
  });
  for (int i = 0; i < 40; ++i) study.RunOne();
  EXPECT_LT(study.best_loss(), 1.05);
}

TEST(GpSampler, FindsTheSignalUnderNoise) {
  Rng rng(6, 6);
  std::vector<double> distances;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SimulatedStudy study(Square(seed), [&](const ParamMap& params) -> std::optional<double> {
      return *Bowl(params) + 0.1 * (rng.Uniform() - 0.5);
    });
    for (int i = 0; i < 50; ++i) study.RunOne();
    const ParamMap& last = study.trials().back().params;
    distances.push_back(*Bowl(last));
  }
  EXPECT_LT(MedianOf(distances), 0.05);
}

// Eight workers ask one after another, and none has reported yet.
TEST(GpSampler, TrialsUnderWayAreNotProposedAgain) {
  const StudySpec study = Square(3);
  const auto sampler = MakeSampler(study);
  ObserveRandomTrials(*sampler, 12, Rng(4, 4), [](const ParamMap& params) {
    return std::sin(9.0 * X(params, "x")) + *Bowl(params);
  });
  int64_t sequence = 12;
  std::vector<ParamMap> asked;
  for (int64_t i = 12; i < 20; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    for (const ParamMap& other : asked) {
      const double distance = std::hypot(X(other, "x") - X(suggestion->params, "x"),
                                         X(other, "y") - X(suggestion->params, "y"));
      EXPECT_GT(distance, 1e-3);
    }
    asked.push_back(suggestion->params);
    sampler->Observe({++sequence, {.number = TrialNumber{i}, .params = asked.back()}});
  }
}

// Quality pulls to where memory ends: 1.3 of the square's 2 units of x + y fit.
TEST(GpSampler, LearnsWhereMemoryEnds) {
  std::vector<double> best;
  std::vector<double> late_ooms;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SimulatedStudy study(Square(seed), [](const ParamMap& params) -> std::optional<double> {
      const double size = X(params, "x") + X(params, "y");
      if (size > 1.3) return std::nullopt;
      return 2.0 - size + std::pow(X(params, "x") - 0.7, 2);
    });
    for (int i = 0; i < 40; ++i) study.RunOne();
    const int64_t before = study.num_ooms();
    for (int i = 0; i < 20; ++i) study.RunOne();
    best.push_back(study.best_loss());
    late_ooms.push_back(static_cast<double>(study.num_ooms() - before));
  }
  EXPECT_LT(MedianOf(best), 0.74);
  EXPECT_LE(MedianOf(late_ooms), 12.0);
}

TEST(GpSampler, ProposesOnlyWhatFitsAndThereTheBest) {
  SimulatedStudy study(Square(1), Bowl);
  study.set_feasibility([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) fits.push_back({.fits = X(params, "y") < 0.5});
    return fits;
  });
  for (int i = 0; i < 35; ++i) EXPECT_LT(X(study.RunOne().params, "y"), 0.5);
  EXPECT_NEAR(study.best_loss(), 3.0 * 0.09, 0.01);
}

double GainIn(const Suggestion& suggestion) {
  constexpr char kGain[] = "decided by quality: expected to improve accuracy by ";
  double gain = -1.0;
  EXPECT_TRUE(absl::StartsWith(suggestion.reason, kGain)) << suggestion.reason;
  const absl::string_view rest =
      absl::string_view(suggestion.reason)
          .substr(std::min(std::strlen(kGain), suggestion.reason.size()));
  EXPECT_TRUE(absl::SimpleAtod(rest.substr(0, rest.find(';')), &gain)) << suggestion.reason;
  return gain;
}

TEST(GpSampler, SaysWhatGainItExpectsInTheObjectivesUnit) {
  StudySpec spec = Square(5);
  spec.objectives = {{"accuracy", Direction::kMaximize}};
  SimulatedStudy study(spec, Bowl);
  SimulatedStudy scaled(
      spec, [](const ParamMap& params) -> std::optional<double> { return 1024.0 * *Bowl(params); });
  for (int i = 0; i < 11; ++i) {
    study.RunOne();
    scaled.RunOne();
  }
  const double gain = GainIn(study.Suggest(11));
  EXPECT_GT(gain, 0.0);
  EXPECT_LT(gain, 0.1) << "the first ten differ by more";
  EXPECT_NEAR(GainIn(scaled.Suggest(11)), 1024.0 * gain, 0.02 * 1024.0 * gain);
}

TEST(GpSampler, SaysWhatItAvoids) {
  SimulatedStudy study(Square(3), [](const ParamMap& params) {
    SimulatedResult result(Bowl(params));
    if (X(params, "x") > 0.7) result.loss.reset();
    if (X(params, "x") > 0.7) result.failed = X(params, "y") > 0.5;
    return result;
  });
  for (int i = 0; i < 25; ++i) study.RunOne();
  const std::string reason = study.Suggest(25).reason;
  EXPECT_NE(reason.find("% likely not to run out of memory, "), std::string::npos) << reason;
  EXPECT_NE(reason.find("% likely not to fail"), std::string::npos) << reason;
}

TEST(GpSampler, UnmodelledParametersAreDrawnAnew) {
  StudySpec spec = Square(5);
  spec.space.parameters.push_back(MakeParameter("seed", IntDomain{.low = 1, .high = 1'000'000}));
  spec.space.parameters.back().modelled = false;
  SimulatedStudy study(spec, Bowl);
  for (int i = 0; i < 30; ++i) study.RunOne();
  std::set<ParamValue> seeds;
  for (const HistoryTrial& trial : study.trials()) seeds.insert(trial.params.at("seed"));
  EXPECT_GT(seeds.size(), 20u);
  EXPECT_LT(study.best_loss(), 1e-4);
}

TEST(GpSampler, FiveHundredParametersShareALengthScale) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 500; ++i) {
    parameters.push_back(MakeParameter("x" + std::to_string(i), FloatDomain{}));
  }
  SimulatedStudy study(StudyOf(parameters), [](const ParamMap& params) -> std::optional<double> {
    return X(params, "x0") + X(params, "x1");
  });
  for (int i = 0; i < 13; ++i) EXPECT_EQ(study.RunOne().params.size(), 500u);
  EXPECT_EQ(study.Suggest(13).sampler, "gp");
}

// Equal losses, one trial, and the same configuration again and again.
TEST(GpSampler, SaysSomethingAfterAnyFewTrials) {
  for (const int64_t count : {1, 2, 15}) {
    StudySpec study = Square(1);
    study.sampler.startup_trials = 1;
    const auto sampler = MakeSampler(study);
    for (int64_t i = 0; i < count; ++i) {
      sampler->Observe({i + 1,
                        {.number = TrialNumber{i},
                         .params = {{"x", 0.5}, {"y", 0.5}},
                         .state = TrialState::kCompleted,
                         .losses = {4.0}}});
    }
    const auto suggestion = sampler->Suggest({TrialNumber{count}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    EXPECT_EQ(suggestion->sampler, "gp");
    // Not where it has been.
    EXPECT_GT(std::hypot(X(suggestion->params, "x") - 0.5, X(suggestion->params, "y") - 0.5), 0.05);
  }
}

// More trials than a model takes: the first 1,100 settle 512, the others follow.
TEST(GpSampler, ElevenHundredTrialsAreCutToWhatAModelTakes) {
  const StudySpec study = Square(1);
  const auto sampler = MakeSampler(study);
  constexpr int64_t kTrials = 1100;
  ObserveRandomTrials(*sampler, kTrials, Rng(4, 4), BowlLoss);
  const auto suggestion = sampler->Suggest({TrialNumber{kTrials}, study.space, GiB(16), nullptr});
  ASSERT_TRUE(suggestion.ok());
  EXPECT_EQ(suggestion->sampler, "gp");
  EXPECT_LT(*Bowl(suggestion->params), 1e-3);
}

TEST(GpSampler, LooksCloselyEverySecondTrial) {
  const StudySpec study = Square(1);
  const auto sampler = MakeSampler(study);
  ObserveRandomTrials(*sampler, 40, Rng(3, 1), BowlLoss);
  const auto everywhere = sampler->Suggest({TrialNumber{40}, study.space, GiB(16), nullptr});
  const auto closely = sampler->Suggest({TrialNumber{41}, study.space, GiB(16), nullptr});
  EXPECT_THAT(everywhere->reason, Not(HasSubstr("in a box")));
  EXPECT_THAT(closely->reason, HasSubstr("in a box around the best"));
  EXPECT_LT(std::abs(X(closely->params, "x") - 0.3), 0.2);
  EXPECT_LT(std::abs(X(closely->params, "y") - 0.8), 0.2);
}

// Ten thousand times as steep one way as the other, turned by 45 degrees, its optimum inside.
TEST(GpSampler, FollowsANarrowValley) {
  SimulatedStudy study(Square(3), [](const ParamMap& params) -> std::optional<double> {
    const double along = X(params, "x") + X(params, "y") - 1.1;
    const double across = X(params, "x") - X(params, "y") + 0.3;
    return along * along + 1e4 * across * across;
  });
  for (int i = 0; i < 80; ++i) study.RunOne();
  EXPECT_LT(study.best_loss(), 1e-2);
}

// Suggestions of one machine are those of every other: written down once, compared exactly.
TEST(GpSampler, SuggestionsAreTheSameOnEveryMachine) {
  const StudySpec study = Square(42);
  const auto sampler = MakeSampler(study);
  ObserveRandomTrials(*sampler, 24, Rng(17, 1), [](const ParamMap& params) {
    const double x = X(params, "x");
    return (x - 0.3) * (x - 0.3) + x * X(params, "y");
  });
  const auto suggestion = sampler->Suggest({TrialNumber{24}, study.space, GiB(16), nullptr});
  ASSERT_TRUE(suggestion.ok());
  EXPECT_EQ(X(suggestion->params, "x"), 0x1.3a70c0a3dbe6fp-2)
      << std::hexfloat << X(suggestion->params, "x");
  EXPECT_EQ(X(suggestion->params, "y"), 0.0) << std::hexfloat << X(suggestion->params, "y");
  EXPECT_EQ(*suggestion->score, -0x1.3bfd4756b21fcp+0) << std::hexfloat << *suggestion->score;
}

}  // namespace
}  // namespace hpo::sampler
