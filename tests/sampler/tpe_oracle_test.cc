// Trial split, densities and acquisition of fixed histories against Optuna's own.
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sampler/priors/trial_split.h"
#include "sampler/space/model_view.h"
#include "sampler/tpe/density_ratio.h"
#include "sampler/tpe/model_space.h"
#include "tests/golden_file.h"
#include "tests/sampler/golden_space.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

// JSON has no telling 2 from 2.0.
ParamMap ParamsIn(const SearchSpace& space, const nlohmann::json& json) {
  ParamMap params;
  for (const Parameter& parameter : space.parameters) {
    const nlohmann::json& value = json[parameter.name];
    params[parameter.name] = value.is_string() ? ParamValue(value.get<std::string>())
                                               : NearestValue(parameter.domain, value);
  }
  return params;
}

HistoryTrial TrialOf(const SearchSpace& space, const nlohmann::json& json, int64_t number) {
  HistoryTrial trial{.number = TrialNumber{number}, .params = ParamsIn(space, json["params"])};
  trial.losses = json["losses"].get<std::vector<double>>();
  trial.state = trial.losses.empty() ? TrialState::kPruned : TrialState::kCompleted;
  trial.violation = json.value("violation", 0.0);
  for (const double value : json.value("reports", std::vector<double>{})) {
    trial.intermediate.Add(static_cast<int64_t>(trial.intermediate.size()), value);
  }
  return trial;
}

// One history of the golden file.
struct Case {
  SearchSpace space;
  double log_units = 0.0;
  std::vector<HistoryTrial> trials;
  std::vector<Point> points;
  bool several_objectives = false;
};

Case CaseOf(const nlohmann::json& parameters, const nlohmann::json& json) {
  Case result;
  for (const std::string name : json["parameters"]) {
    const Domain domain = DomainOf(parameters[name]);
    result.space.parameters.push_back(MakeParameter(name, domain));
    result.log_units += LogUnit(domain);
  }
  for (const nlohmann::json& trial : json["trials"]) {
    const auto number = static_cast<int64_t>(result.trials.size());
    result.trials.push_back(TrialOf(result.space, trial, number));
    if (result.trials.back().losses.size() > 1) result.several_objectives = true;
  }
  const ModelSpace model(result.space, ModelView::kQuality);
  for (const nlohmann::json& point : json["points"]) {
    result.points.push_back(model.Encode(ParamsIn(result.space, point)));
  }
  return result;
}

// Optuna's number of good trials, where ours counts more of them by their quality.
int64_t NumGoodInOptuna(const Case& test) {
  const auto n = static_cast<int64_t>(test.trials.size());
  const int64_t tenth = (n + 9) / 10;
  return test.several_objectives ? tenth : std::min<int64_t>(tenth, 25);
}

std::vector<TrialNumber> GoodOf(const Case& test) {
  std::vector<const HistoryTrial*> finished;
  for (const HistoryTrial& trial : test.trials) finished.push_back(&trial);
  return BestTrials(finished, NumGoodInOptuna(test));
}

void ExpectNear(double value, double expected) {
  EXPECT_NEAR(value, expected, 1e-9 * std::max(1.0, std::abs(expected)));
}

TEST(TpeOracle, SplitDensitiesAndAcquisitionAreOptunas) {
  const nlohmann::json golden = ReadGolden("tpe_scores.json");
  ASSERT_EQ(golden["cases"].size(), 10u);
  for (const nlohmann::json& json : golden["cases"]) {
    SCOPED_TRACE(json["parameters"].dump() + ", trials: " + std::to_string(json["trials"].size()));
    const Case test = CaseOf(golden["parameters"], json);
    const std::vector<TrialNumber> good = GoodOf(test);
    std::vector<int64_t> numbers;
    for (const TrialNumber number : good) numbers.push_back(number.value);
    EXPECT_EQ(numbers, json["good"].get<std::vector<int64_t>>());

    const ModelSpace model(test.space, ModelView::kQuality);
    DensityRatio ratio(model.axes(), Dependence::kJoint);
    for (const HistoryTrial& trial : test.trials) {
      const Point point = model.Encode(trial.params);
      const bool is_good = std::binary_search(good.begin(), good.end(), trial.number);
      if (is_good) ratio.AddBelow(trial.number.value, point);
      if (!is_good) ratio.AddAbove(trial.number.value, point);
    }
    ratio.Refit(std::vector<double>(good.size(), 1.0));
    const std::vector<double> below = ratio.below().LogDensities(test.points, Dependence::kJoint);
    const std::vector<double> relative = ratio.LogRelative(test.points);
    const double gamma = static_cast<double>(good.size()) / static_cast<double>(test.trials.size());
    for (size_t i = 0; i < test.points.size(); ++i) {
      ExpectNear(below[i] - test.log_units, json["log_below"][i]);
      // The relative ratio grows with Optuna's score, which is that of the densities.
      const double score = json["score"][i];
      ExpectNear(relative[i], -std::log(gamma + (1.0 - gamma) * std::exp(-score)));
    }
  }
}

}  // namespace
}  // namespace hpo::sampler
