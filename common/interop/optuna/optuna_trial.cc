// Tested by tests/common/interop/optuna/optuna_study_test.cc.
#include "common/interop/optuna/optuna_trial.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

constexpr const char* kStates[] = {"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"};
constexpr char kTime[] = "%Y-%m-%d %H:%M:%E6S";

bool HasObjectives(const StudySpec& study, const Trial& trial) {
  const Metrics& metrics = std::get<Completed>(*trial.outcome).metrics;
  for (const Objective& objective : study.objectives) {
    const auto found = metrics.find(objective.metric);
    if (found == metrics.end() || std::isnan(found->second)) return false;
  }
  return true;
}

OptunaState StateOf(const StudySpec& study, const Trial& trial) {
  switch (trial.state) {
    case TrialState::kQueued:
      return OptunaState::kWaiting;
    case TrialState::kRunning:
      return OptunaState::kRunning;
    case TrialState::kCompleted:
      if (trial.demonstration) return OptunaState::kPruned;
      return HasObjectives(study, trial) ? OptunaState::kComplete : OptunaState::kFail;
    case TrialState::kPruned:
      return OptunaState::kPruned;
    case TrialState::kFailed:
    case TrialState::kCancelled:
      return OptunaState::kFail;
  }
  return OptunaState::kFail;
}

Json DistributionJson(const FloatDomain& domain) {
  double high = domain.high;
  if (domain.step.has_value()) {
    high = domain.low + *domain.step * std::floor((high - domain.low) / *domain.step + 1e-8);
  }
  return {{"name", "FloatDistribution"},
          {"attributes",
           {{"low", domain.low},
            {"high", high},
            {"log", domain.log},
            {"step", domain.step.has_value() ? Json(*domain.step) : Json(nullptr)}}}};
}

Json DistributionJson(const IntDomain& domain) {
  const int64_t num_steps = (domain.high - domain.low) / domain.step;
  return {{"name", "IntDistribution"},
          {"attributes",
           {{"low", domain.low},
            {"high", domain.low + num_steps * domain.step},
            {"log", domain.log},
            {"step", domain.step}}}};
}

Json DistributionJson(const CategoricalDomain& domain) {
  Json choices = Json::array();
  for (const ParamValue& choice : domain.choices) choices.push_back(ParamToJson(choice));
  return {{"name", "CategoricalDistribution"}, {"attributes", {{"choices", std::move(choices)}}}};
}

// As Python's json writes it: a constraint that was not reported is infinitely exceeded.
std::string ConstraintsText(const std::vector<MetricConstraint>& constraints,
                            const Metrics& metrics) {
  return absl::StrCat(
      "[",
      absl::StrJoin(constraints, ", ",
                    [&metrics](std::string* out, const MetricConstraint& constraint) {
                      const double excess = ExcessOf(constraint, metrics);
                      out->append(std::isfinite(excess) ? DumpJson(excess) : "Infinity");
                    }),
      "]");
}

// A number, or the index of a choice; nullopt where the domain does not have it.
std::optional<double> StoredValue(const Domain& domain, const ParamValue& value) {
  const auto* categorical = std::get_if<CategoricalDomain>(&domain);
  if (categorical == nullptr) return AsNumber(value);
  for (size_t i = 0; i < categorical->choices.size(); ++i) {
    if (categorical->choices[i] == value) return static_cast<double>(i);
  }
  return std::nullopt;
}

std::vector<OptunaParam> ParamsOf(const StudySpec& study, const Trial& trial) {
  std::vector<OptunaParam> params;
  for (const auto& [name, value] : trial.params) {
    const Parameter* parameter = study.space.Find(name);
    if (parameter == nullptr || !Contains(parameter->domain, value)) continue;
    const std::optional<double> stored = StoredValue(parameter->domain, value);
    if (!stored.has_value()) continue;
    const Json distribution =
        std::visit([](const auto& domain) { return DistributionJson(domain); }, parameter->domain);
    params.push_back({name, *stored, DumpJson(distribution)});
  }
  return params;
}

std::vector<double> ValuesOf(const StudySpec& study, const TrialView& view, OptunaState state) {
  std::vector<double> values;
  if (state == OptunaState::kComplete) {
    const Metrics& metrics = std::get<Completed>(*view.trial.outcome).metrics;
    for (const Objective& objective : study.objectives) {
      values.push_back(metrics.at(objective.metric));
    }
  } else if (state == OptunaState::kPruned && study.objectives.size() == 1 &&
             !view.measurements.empty()) {
    const Metrics& metrics = view.measurements.back().metrics;
    const auto last = metrics.find(study.objectives.front().metric);
    if (last != metrics.end() && !std::isnan(last->second)) values.push_back(last->second);
  }
  return values;
}

}  // namespace

absl::string_view Name(OptunaState state) { return kStates[static_cast<size_t>(state)]; }

std::optional<OptunaState> ParseOptunaState(absl::string_view name) {
  for (size_t i = 0; i < std::size(kStates); ++i) {
    if (name == kStates[i]) return static_cast<OptunaState>(i);
  }
  return std::nullopt;
}

bool IsFinished(OptunaState state) {
  return state != OptunaState::kRunning && state != OptunaState::kWaiting;
}

std::string OptunaTimeText(absl::Time time) {
  if (time == absl::InfinitePast()) return "";
  return absl::FormatTime(kTime, time, absl::LocalTimeZone());
}

std::string OptunaMetricNames(const StudySpec& study) {
  Json metrics = Json::array();
  for (const Objective& objective : study.objectives) metrics.push_back(objective.metric);
  return DumpJson(metrics);
}

OptunaTrial ToOptuna(const StudySpec& study, const TrialView& view) {
  const Trial& trial = view.trial;
  OptunaTrial optuna;
  optuna.number = trial.id.number.value;
  optuna.state = StateOf(study, trial);
  optuna.started = OptunaTimeText(trial.started);
  optuna.completed = OptunaTimeText(trial.ended);
  optuna.params = ParamsOf(study, trial);
  optuna.values = ValuesOf(study, view, optuna.state);
  if (study.objectives.size() == 1) {
    for (const Measurement& measurement : view.measurements) {
      const auto found = measurement.metrics.find(study.objectives.front().metric);
      if (found == measurement.metrics.end()) continue;
      // Of several at one step, the first counts.
      optuna.intermediate_values.emplace(measurement.step, found->second);
    }
  }
  optuna.user_attributes = trial.attributes;
  optuna.user_attributes["hpo:sampler"] = DumpJson(view.sampler);
  if (trial.outcome) {
    optuna.user_attributes["hpo:outcome"] = DumpJson(OutcomeToJson(*trial.outcome));
  }
  if (trial.demonstration) optuna.user_attributes["hpo:demonstration"] = "true";
  const auto* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
  if (completed != nullptr && !study.constraints.empty()) {
    optuna.system_attributes["constraints"] =
        ConstraintsText(study.constraints, completed->metrics);
  }
  return optuna;
}

}  // namespace hpo
