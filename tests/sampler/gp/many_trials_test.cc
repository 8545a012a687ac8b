// Histories of more trials than a process takes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/gp/quality_points.h"
#include "sampler/space/model_view.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

constexpr int64_t kTrials = 700;
constexpr double kEdge = 0.7;

double X(const ParamMap& params) { return *FindDouble(params, "x"); }
double Y(const ParamMap& params) { return *FindDouble(params, "y"); }

// Beyond the edge in x a trial is lost, in one of four ways. The least loss is there.
enum class Beyond { kFailure, kOutOfMemory, kMissByFar, kMissByLittle };

SimulatedResult ResultOf(Beyond beyond, const ParamMap& params) {
  SimulatedResult result(std::pow(X(params) - 0.8, 2) + std::pow(Y(params) - 0.8, 2));
  const bool lost = X(params) > kEdge;
  if (beyond == Beyond::kMissByLittle) result.excesses = {X(params) - kEdge};
  if (beyond == Beyond::kMissByFar) result.excesses = {lost ? 1.0 : -1.0};
  if (!lost || !result.excesses.empty()) return result;
  result.loss.reset();
  result.failed = beyond == Beyond::kFailure;
  return result;
}

class ManyTrials : public testing::TestWithParam<Beyond> {
 protected:
  // Two hundred trials anywhere, then none that is lost.
  ManyTrials() {
    spec_.sampler = {.type = "gp", .seed = 2};
    spec_.objectives = {{"loss", Direction::kMinimize}};
    const bool by_metric = GetParam() == Beyond::kMissByFar || GetParam() == Beyond::kMissByLittle;
    if (by_metric) spec_.constraints = {{.metric = "cost", .at_most = 1.0}};
    spec_.space.parameters = {MakeParameter("x", FloatDomain{}), MakeParameter("y", FloatDomain{})};
    Rng rng(5, 9);
    for (int64_t i = 0; i < kTrials; ++i) {
      const double widest = i < 200 ? 1.0 : kEdge;
      Tell(trials_, {{"x", widest * rng.Uniform()}, {"y", rng.Uniform()}});
    }
  }

  void Tell(std::vector<HistoryTrial>& trials, ParamMap params) const {
    HistoryTrial trial{.number = TrialNumber{static_cast<int64_t>(trials.size())},
                       .params = std::move(params)};
    EndTrial(ResultOf(GetParam(), trial.params), GiB(16), trial);
    trials.push_back(std::move(trial));
  }

  std::unique_ptr<Sampler> SamplerOf(const std::vector<HistoryTrial>& trials) const {
    std::unique_ptr<Sampler> sampler = MakeSampler(spec_);
    for (const HistoryTrial& trial : trials) sampler->Observe({trial.number.value + 1, trial});
    return sampler;
  }

  Suggestion Ask(const Sampler& sampler, size_t number) const {
    return *sampler.Suggest(
        {TrialNumber{static_cast<int64_t>(number)}, spec_.space, GiB(16), nullptr});
  }

  StudySpec spec_;
  std::vector<HistoryTrial> trials_;
};

TEST_P(ManyTrials, WhatWasToBeAvoidedIsNotForgotten) {
  const auto sampler = SamplerOf(trials_);
  constexpr int kAsked = 4;
  int lost = 0;
  for (int i = 0; i < kAsked; ++i) {
    const Suggestion suggestion = Ask(*sampler, trials_.size());
    EXPECT_EQ(suggestion.sampler, "gp");
    lost += X(suggestion.params) > kEdge ? 1 : 0;
    Tell(trials_, suggestion.params);
    sampler->Observe({trials_.back().number.value + 1, trials_.back()});
  }
  EXPECT_LE(lost, kAsked / 4);
  const Suggestion kept = Ask(*sampler, trials_.size());
  const Suggestion anew = Ask(*SamplerOf(trials_), trials_.size());
  EXPECT_EQ(kept.params, anew.params);
  EXPECT_EQ(kept.score, anew.score);
}

INSTANTIATE_TEST_SUITE_P(Ways, ManyTrials,
                         testing::Values(Beyond::kFailure, Beyond::kOutOfMemory, Beyond::kMissByFar,
                                         Beyond::kMissByLittle),
                         [](const auto& test) -> std::string {
                           switch (test.param) {
                             case Beyond::kFailure:
                               return "failure";
                             case Beyond::kOutOfMemory:
                               return "out_of_memory";
                             case Beyond::kMissByFar:
                               return "miss_by_far";
                             case Beyond::kMissByLittle:
                               return "miss_by_little";
                           }
                           return "";
                         });

// Few are feasible, they are the oldest, and all others have a smaller loss.
TEST(QualityPoints, TheBestThatIsFeasibleStaysInTheModel) {
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{})};
  const CodedSpace coded(space);
  TrainingData data;
  for (int i = 0; i < 900; ++i) {
    const bool feasible = i < 40;
    data.observed.push_back({static_cast<double>(i) / 900.0});
    data.losses.push_back(feasible ? 10.0 + i : 1.0 / (1.0 + i));
    data.feasible.push_back(feasible);
  }
  const QualityPoints points = ChooseQualityPoints(InputSpace(coded, ModelView::kQuality), data);
  EXPECT_EQ(std::count(points.may_be_best.begin(), points.may_be_best.end(), true), 40);
  EXPECT_EQ(points.observed.values.size(), 512u + 900u - FitPoint(900));
  EXPECT_LT(points.fitted.values.size(), points.observed.values.size());
}

}  // namespace
}  // namespace hpo::sampler
