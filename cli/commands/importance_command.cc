#include "cli/commands/importance_command.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/interop/importance/study_importance.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 30;

// The completed trials that have a finite value of the objective.
absl::StatusOr<std::vector<AssessedTrial>> ReadCompleted(TrialClient& trials,
                                                         const std::string& study,
                                                         const Objective& objective) {
  std::vector<AssessedTrial> assessed;
  const auto take = [&](Trial& trial) {
    const auto* completed =
        trial.outcome.has_value() ? std::get_if<Completed>(&*trial.outcome) : nullptr;
    if (completed == nullptr || trial.demonstration) return absl::OkStatus();
    const auto value = completed->metrics.find(objective.metric);
    if (value != completed->metrics.end() && std::isfinite(value->second)) {
      assessed.push_back({std::move(trial.params), LossOf(objective, value->second)});
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(
      ForEachTrial(trials, study, {.filter = {.states = {TrialState::kCompleted}}}, take));
  return assessed;
}

void PrintTable(const std::vector<AssessedParameter>& parameters, Session& session) {
  Table table({{"PARAMETER"}, {"SHARE", Align::kRight}, {"5-95 %", Align::kRight}, {""}});
  for (const AssessedParameter& parameter : parameters) {
    const auto length = static_cast<size_t>(std::lround(kBarWidth * parameter.share));
    table.AddRow({parameter.name, absl::StrFormat("%.1f %%", 100.0 * parameter.share),
                  absl::StrFormat("%.1f-%.1f %%", 100.0 * parameter.low, 100.0 * parameter.high),
                  std::string(length, '#')});
  }
  session.out << table.Render(session.terminal.columns, session.terminal.colors);
}

}  // namespace

absl::Status ShowImportance(Session& session, const ImportanceOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  HPO_ASSIGN_OR_RETURN(const Objective objective,
                       FindObjective(study.spec, options.metric, "--metric"));
  HPO_ASSIGN_OR_RETURN(const std::vector<AssessedTrial> trials,
                       ReadCompleted(session.client.trials(), name, objective));
  const auto method =
      options.method == "fanova" ? ImportanceMethod::kFanova : ImportanceMethod::kPedAnova;
  const auto assessment = AssessImportance(study.spec.space, trials, method);
  if (!assessment.ok()) return Annotate(assessment.status(), absl::StrCat("study ", name));
  if (!session.json) {
    session.out << name << ": what moved " << objective.metric << ", by " << options.method
                << " of " << trials.size() << " completed trials\n\n";
    PrintTable(assessment->parameters, session);
    return absl::OkStatus();
  }
  Json parameters = Json::array();
  for (const AssessedParameter& parameter : assessment->parameters) {
    parameters.push_back({{"parameter", parameter.name},
                          {"share", parameter.share},
                          {"low", parameter.low},
                          {"high", parameter.high}});
  }
  PrintJson(Json{{"study", name},
                 {"metric", objective.metric},
                 {"method", options.method},
                 {"trials", trials.size()},
                 {"importance", std::move(parameters)}},
            session.out);
  return absl::OkStatus();
}

}  // namespace hpo::cli
