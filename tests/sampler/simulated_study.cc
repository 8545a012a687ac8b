#include "tests/sampler/simulated_study.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/status.h"
#include "sampler/factory/make_sampler.h"

namespace hpo::sampler {

void EndTrial(const SimulatedResult& result, Bytes capacity, HistoryTrial& trial) {
  if (result.loss.has_value()) {
    trial.state = TrialState::kCompleted;
    trial.losses = {*result.loss};
    trial.intermediate = result.reports;
    trial.excesses = result.excesses;
    for (const double excess : result.excesses) trial.violation += std::max(excess, 0.0);
  } else if (result.stopped) {
    trial.state = TrialState::kPruned;
    trial.prune_reason = PruneReason::kPruner;
  } else if (result.failed) {
    trial.state = TrialState::kFailed;
  } else {
    trial.state = TrialState::kPruned;
    trial.prune_reason = PruneReason::kOutOfMemory;
    trial.memory = {{.bytes = capacity, .censored = true, .limit = capacity}};
  }
  if (IsFinished(trial) && !EndedByMemory(trial) && result.used > Bytes{}) {
    trial.memory = {{.bytes = result.used, .limit = capacity}};
  }
}

CategoricalDomain IntChoices(std::initializer_list<int64_t> values) {
  CategoricalDomain domain;
  for (const int64_t value : values) domain.choices.push_back(value);
  return domain;
}

Parameter MakeParameter(const std::string& name, Domain domain) {
  Parameter parameter;
  parameter.name = name;
  parameter.domain = std::move(domain);
  return parameter;
}

SimulatedStudy::SimulatedStudy(const StudySpec& study, SimulatedObjective objective, Bytes capacity,
                               std::vector<PriorStudy> priors)
    : study_(study),
      objective_(std::move(objective)),
      capacity_(capacity),
      sampler_(MakeSampler(study, std::move(priors))) {}

Suggestion SimulatedStudy::Suggest(int64_t number) const {
  auto suggestion = sampler_->Suggest({.number = TrialNumber{number},
                                       .space = study_.space,
                                       .capacity = capacity_,
                                       .feasibility = feasibility_,
                                       .budget_trials = study_.budget.trials,
                                       .repetition = Repetition::kWhereAllTried});
  HPO_CHECK(suggestion.ok());
  return *std::move(suggestion);
}

const HistoryTrial& SimulatedStudy::RunOne() {
  const int64_t number = static_cast<int64_t>(trials_.size());
  HistoryTrial trial{.number = TrialNumber{number}, .params = Suggest(number).params};
  EndTrial(objective_(trial.params), capacity_, trial);
  sampler_->Observe({.sequence = number + 1, .trial = trial});
  trials_.push_back(std::move(trial));
  return trials_.back();
}

double SimulatedStudy::best_loss() const {
  double best = std::numeric_limits<double>::infinity();
  for (const HistoryTrial& trial : trials_) {
    if (IsFeasible(trial)) best = std::min(best, trial.losses.front());
  }
  return best;
}

int64_t SimulatedStudy::num_ooms() const {
  return std::count_if(trials_.begin(), trials_.end(),
                       [](const HistoryTrial& trial) { return trial.prune_reason.has_value(); });
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace hpo::sampler
