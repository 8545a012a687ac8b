#include "sampler/simple/startup.h"

#include <gtest/gtest.h>

#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

StudySpec StudyOf(std::vector<Parameter> parameters) {
  StudySpec study;
  study.space.parameters = std::move(parameters);
  return study;
}

TEST(SuggestAtStartup, FollowsTheStudy) {
  StudySpec study = StudyOf({MakeParameter("x", FloatDomain{})});
  const AskContext context{TrialNumber{4}, study.space, GiB(16), nullptr};
  for (const char* startup : {"sobol", "random"}) {
    study.sampler.startup = startup;
    const auto suggestion = SuggestAtStartup(context, {}, study.sampler, {});
    ASSERT_TRUE(suggestion.ok());
    EXPECT_EQ(suggestion->sampler, startup);
    EXPECT_FALSE(suggestion->score.has_value());
  }
}

TEST(StartupTrials, AreNoMoreThanAThirdOfASmallBudget) {
  const SearchSpace space;
  const auto number = [&space](std::optional<int64_t> budget, int64_t startup_trials = 10) {
    AskContext context{TrialNumber{4}, space, GiB(16), nullptr};
    context.budget_trials = budget;
    return StartupTrials({.startup_trials = startup_trials}, context);
  };
  EXPECT_EQ(number(std::nullopt), 10);
  EXPECT_EQ(number(1000), 10);
  EXPECT_EQ(number(30), 10);
  EXPECT_EQ(number(20), 6);
  EXPECT_EQ(number(5), 3);
  EXPECT_EQ(number(20, 2), 2);
  EXPECT_EQ(number(5, 0), 0);
}

TEST(StartupTrials, AModelProposesTheRestOfASmallBudget) {
  for (const char* type : {"auto", "gp", "tpe", "cma-es"}) {
    StudySpec study =
        StudyOf({MakeParameter("x", FloatDomain{}), MakeParameter("y", FloatDomain{})});
    study.sampler.type = type;
    study.budget.trials = 9;
    SimulatedStudy simulated(study,
                             [](const ParamMap& params) { return *FindDouble(params, "x"); });
    for (int i = 0; i < 9; ++i) {
      const std::string reason = simulated.Suggest(i).reason;
      simulated.RunOne();
      EXPECT_EQ(reason.find("one of the first 3 trials") != std::string::npos, i < 3)
          << type << " " << i << ": " << reason;
    }
  }
}

// A worker of which no limit is known: what its trials used is no reason to leave them out.
TEST(StartupTrials, AreTheSameWhereNoLimitIsKnown) {
  for (const char* type : {"auto", "gp", "tpe", "cma-es"}) {
    StudySpec study = StudyOf({MakeParameter("x", FloatDomain{})});
    study.sampler.type = type;
    study.memory.policy = MemoryPolicy::kPlan;
    study.budget.trials = 30;
    const auto loss_with_use = [](const ParamMap& params) {
      const double off = *FindDouble(params, "x") - 0.6;
      SimulatedResult result(off * off);
      result.used = MiB(15);
      return result;
    };
    SimulatedStudy simulated(study, loss_with_use, /*capacity=*/Bytes{});
    for (int i = 0; i < 30; ++i) simulated.RunOne();
    EXPECT_EQ(simulated.Suggest(30).reason.find("one of the first"), std::string::npos) << type;
    EXPECT_LT(simulated.best_loss(), 1e-4) << type;
  }
}

}  // namespace
}  // namespace hpo::sampler
