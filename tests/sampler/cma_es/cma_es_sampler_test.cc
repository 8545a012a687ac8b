#include "sampler/cma_es/cma_es_sampler.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

StudySpec CmaStudy(std::vector<Parameter> parameters, uint64_t seed = 1) {
  StudySpec study;
  study.sampler = {.type = "cma-es", .seed = seed};
  study.objectives = {Objective{}};
  study.space.parameters = std::move(parameters);
  return study;
}

std::vector<Parameter> Plane() {
  return {MakeParameter("x", FloatDomain{.low = -5.0, .high = 5.0}),
          MakeParameter("y", FloatDomain{.low = 1e-3, .high = 1e3, .log = true})};
}

double Valley(const ParamMap& params) {
  const double x = *FindDouble(params, "x");
  const double y = std::log10(*FindDouble(params, "y"));
  return std::pow(1.0 - x, 2) + 100.0 * std::pow(y - x * x, 2);
}

void RunMany(SimulatedStudy& study, int trials) {
  for (int i = 0; i < trials; ++i) study.RunOne();
}

TEST(CmaEsSampler, FollowsACurvedValley) {
  SimulatedStudy study(CmaStudy(Plane()), [](const ParamMap& params) { return Valley(params); });
  EXPECT_EQ(study.Suggest(0).sampler, "random");
  RunMany(study, 600);
  EXPECT_EQ(study.Suggest(600).sampler, "cma-es");
  EXPECT_LT(study.best_loss(), 1e-4);
}

// On grids too: the distribution never gets so narrow that one value is all it draws.
TEST(CmaEsSampler, FindsTheBestOfWholeNumbers) {
  std::vector<Parameter> parameters;
  for (const char* name : {"a", "b", "c", "d"}) {
    parameters.push_back(MakeParameter(name, IntDomain{.low = 0, .high = 40}));
  }
  parameters.push_back(MakeParameter("x", FloatDomain{}));
  int found = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SimulatedStudy study(CmaStudy(parameters, seed), [](const ParamMap& params) {
      double sum = std::pow(*FindDouble(params, "x") - 0.3, 2);
      for (const auto& [name, value] : params) {
        if (name != "x") sum += std::pow(static_cast<double>(std::get<int64_t>(value)) - 23.0, 2);
      }
      return sum;
    });
    RunMany(study, 400);
    found += study.best_loss() < 0.5;  // all four
  }
  EXPECT_GE(found, 7);
}

TEST(CmaEsSampler, AvoidsWhatFailsAndWhatDoesNotFit) {
  SimulatedStudy study(CmaStudy(Plane()), [](const ParamMap& params) -> SimulatedResult {
    SimulatedResult result(Valley(params));
    if (*FindDouble(params, "x") < 0.0) {
      result.loss.reset();
      result.failed = true;
    }
    return result;
  });
  study.set_feasibility([](std::span<const ParamMap> batch) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : batch) {
      const bool fits_in = *FindDouble(params, "y") < 100.0;
      fits.push_back({.fits = fits_in, .needed = fits_in ? GiB(1) : GiB(99)});
    }
    return fits;
  });
  int failed = 0;
  for (int i = 0; i < 300; ++i) {
    const HistoryTrial& trial = study.RunOne();
    EXPECT_LT(*FindDouble(trial.params, "y"), 100.0);
    failed += trial.state == TrialState::kFailed;
  }
  EXPECT_LT(failed, 60) << "half of the space fails";
  EXPECT_LT(study.best_loss(), 1e-4);
}

HistoryTrial Pruned(int64_t number, double x, double y, double last) {
  return {.number = TrialNumber{number},
          .params = {{"x", x}, {"y", y}},
          .state = TrialState::kPruned,
          .prune_reason = PruneReason::kPruner,
          .intermediate = {{1, last}}};
}

// However good the values seem at which they were stopped.
TEST(CmaEsSampler, PrunedTrialsAreWorseThanCompletedOnes) {
  StudySpec study = CmaStudy(Plane());
  study.sampler.startup_trials = 10;
  const auto sampler = MakeSampler(study);
  int64_t sequence = 0;
  std::mt19937 random(1);
  const auto near = [&](double x) { return x + 1e-3 * static_cast<double>(random() % 1000); };
  for (int64_t i = 0; i < 60; ++i) {
    if (i % 2 == 1) {
      sampler->Observe({++sequence, Pruned(i, near(-4.0), 1.0, -100.0)});
      continue;
    }
    HistoryTrial trial{.number = TrialNumber{i},
                       .params = {{"x", near(3.0)}, {"y", 1.0}},
                       .state = TrialState::kCompleted,
                       .losses = {1.0 + static_cast<double>(i % 7)}};
    sampler->Observe({++sequence, trial});
  }
  double mean = 0.0;
  for (int64_t i = 60; i < 100; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    mean += *FindDouble(suggestion->params, "x") / 40.0;
  }
  EXPECT_NEAR(mean, 3.5, 0.7);
}

// A late result of an early trial changes what generations there were.
TEST(CmaEsSampler, ResultsOutOfOrderEqualARebuild) {
  const StudySpec study = CmaStudy(Plane(), 4);
  const auto running = MakeSampler(study);
  std::vector<HistoryTrial> trials;
  std::mt19937 random(2);
  for (int64_t i = 0; i < 120; ++i) {
    const auto suggestion = running->Suggest({TrialNumber{i}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    trials.push_back({.number = TrialNumber{i}, .params = suggestion->params});
    running->Observe({i * 2 + 1, trials.back()});
    HistoryTrial& ending = trials[random() % trials.size()];
    if (ending.state == TrialState::kRunning) {
      ending.state = TrialState::kCompleted;
      ending.losses = {Valley(ending.params)};
    }
    running->Observe({i * 2 + 2, ending});
    if (i % 10 != 9) continue;
    const auto rebuilt = MakeSampler(study);
    int64_t sequence = 0;
    for (const HistoryTrial& trial : trials) rebuilt->Observe({++sequence, trial});
    for (const Sampler* sampler : {running.get(), rebuilt.get()}) {
      const auto again = sampler->Suggest({TrialNumber{i + 1}, study.space, GiB(16), nullptr});
      const auto once = running->Suggest({TrialNumber{i + 1}, study.space, GiB(16), nullptr});
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(again->params, once->params);
    }
  }
}

TEST(CmaEsSampler, WhereNothingOfUseIsKnownItDrawsAtRandom) {
  SimulatedStudy study(CmaStudy(Plane()), [](const ParamMap&) -> SimulatedResult {
    return std::numeric_limits<double>::quiet_NaN();
  });
  RunMany(study, 30);
  EXPECT_EQ(study.Suggest(30).sampler, "random");
}

}  // namespace
}  // namespace hpo::sampler
