#include "sampler/simple/qmc_sampler.h"

#include <cmath>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

StudySpec QmcStudy(std::vector<Parameter> parameters, uint64_t seed = 3) {
  StudySpec study;
  study.sampler = {.type = "qmc", .seed = seed};
  study.space.parameters = std::move(parameters);
  return study;
}

CategoricalDomain Letters(int count) {
  CategoricalDomain domain;
  for (int i = 0; i < count; ++i)
    domain.choices.push_back(std::string(1, static_cast<char>('a' + i)));
  return domain;
}

std::optional<double> Zero(const ParamMap&) { return 0.0; }

TEST(QmcSampler, SpreadsEvenlyOverEveryKindOfDomain) {
  SimulatedStudy study(
      QmcStudy({MakeParameter("x", FloatDomain{.low = 1e-4, .high = 1.0, .log = true}),
                MakeParameter("c", Letters(4)),
                MakeParameter("n", IntDomain{.low = 10, .high = 80, .step = 10})}),
      Zero);
  std::map<ParamValue, int> letters, numbers;
  std::set<int> decades;
  for (int i = 0; i < 64; ++i) {
    const ParamMap params = study.RunOne().params;
    ++letters[params.at("c")];
    ++numbers[params.at("n")];
    decades.insert(static_cast<int>(std::log10(*FindDouble(params, "x")) * 8.0));
    EXPECT_EQ(study.Suggest(0).sampler, "sobol");
  }
  for (const auto& [letter, count] : letters) EXPECT_EQ(count, 16) << FormatParam(letter);
  EXPECT_EQ(numbers.size(), 8u);
  for (const auto& [number, count] : numbers) EXPECT_EQ(count, 8) << FormatParam(number);
  EXPECT_EQ(decades.size(), 32u);
}

// A parameter keeps its own dimension whether its parent's value is there or not.
TEST(QmcSampler, ConditionalParametersAreEvenWhereTheyExist) {
  Parameter child = MakeParameter("x", FloatDomain{});
  child.when = {{"c", {std::string("a")}}};
  SimulatedStudy study(
      QmcStudy({MakeParameter("c", Letters(2)), child, MakeParameter("y", FloatDomain{})}), Zero);
  std::set<int> eighths;
  int with = 0;
  for (int i = 0; i < 64; ++i) {
    const ParamMap params = study.RunOne().params;
    ASSERT_EQ(params.count("x") > 0, params.at("c") == ParamValue(std::string("a")));
    if (params.count("x") == 0) continue;
    ++with;
    eighths.insert(static_cast<int>(*FindDouble(params, "x") * 8.0));
  }
  EXPECT_EQ(with, 32);
  EXPECT_EQ(eighths.size(), 8u);
}

TEST(QmcSampler, ProposesEachConfigurationOnceWhileThereAreOthers) {
  SimulatedStudy study(QmcStudy({MakeParameter("c", Letters(5)),
                                 MakeParameter("n", IntDomain{.low = 1, .high = 4})}),
                       Zero);
  std::set<ParamMap> seen;
  for (int i = 0; i < 20; ++i) seen.insert(study.RunOne().params);
  EXPECT_EQ(seen.size(), 20u);
  // Nothing new is left: the first that fits comes again.
  EXPECT_EQ(seen.count(study.RunOne().params), 1u);
}

TEST(QmcSampler, RunningTrialsAreNotRepeated) {
  const StudySpec study = QmcStudy({MakeParameter("c", Letters(3))});
  const auto sampler = MakeSampler(study);
  std::set<ParamMap> seen;
  for (int64_t i = 0; i < 3; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    seen.insert(suggestion->params);
    sampler->Observe({i + 1, {.number = TrialNumber{i}, .params = suggestion->params}});
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(QmcSampler, PointsThatDoNotFitAreReplacedByOtherPoints) {
  SimulatedStudy study(QmcStudy({MakeParameter("x", FloatDomain{})}), Zero);
  study.set_feasibility([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = *FindDouble(params, "x") < 0.25, .needed = GiB(1)});
    }
    return fits;
  });
  std::set<int> parts;
  for (int i = 0; i < 64; ++i) {
    const HistoryTrial& trial = study.RunOne();
    ASSERT_LT(*FindDouble(trial.params, "x"), 0.25);
    parts.insert(static_cast<int>(*FindDouble(trial.params, "x") * 64.0));
  }
  EXPECT_EQ(parts.size(), 16u);
}

TEST(QmcSampler, ParametersNotModelledAreDrawn) {
  Parameter seed = MakeParameter("a_seed", IntDomain{.low = 1, .high = 1 << 30});
  seed.modelled = false;
  const StudySpec with = QmcStudy({seed, MakeParameter("x", FloatDomain{})});
  const StudySpec without = QmcStudy({MakeParameter("x", FloatDomain{})});
  for (int64_t i = 0; i < 8; ++i) {
    const SimulatedStudy a(with, Zero);
    const SimulatedStudy b(without, Zero);
    EXPECT_EQ(a.Suggest(i).params.at("x"), b.Suggest(i).params.at("x")) << "takes no dimension";
  }
}

TEST(QmcSampler, FiveHundredParameters) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 500; ++i) {
    parameters.push_back(MakeParameter("x" + std::to_string(i), FloatDomain{}));
  }
  SimulatedStudy study(QmcStudy(parameters), Zero);
  double sum = 0.0;
  for (int i = 0; i < 16; ++i) {
    const ParamMap params = study.RunOne().params;
    ASSERT_EQ(params.size(), 500u);
    sum += *FindDouble(params, "x499");
  }
  EXPECT_NEAR(sum / 16.0, 0.5, 0.3);
}

}  // namespace
}  // namespace hpo::sampler
