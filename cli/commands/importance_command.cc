#include "cli/commands/importance_command.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/interop/importance/fanova.h"
#include "common/interop/importance/ped_anova.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 30;

// The study's objective of that metric; the first where none is named.
absl::StatusOr<Objective> FindObjective(const StudySpec& spec, const std::string& metric) {
  if (metric.empty()) return spec.objectives.front();
  std::vector<std::string> known;
  for (const Objective& objective : spec.objectives) {
    if (objective.metric == metric) return objective;
    known.push_back(objective.metric);
  }
  return absl::InvalidArgumentError(absl::StrCat("--metric: expected an objective of ", spec.name,
                                                 ", ", absl::StrJoin(known, " or "), "; got '",
                                                 metric, "'"));
}

// The completed trials that have a finite value of the objective.
absl::StatusOr<std::vector<AssessedTrial>> ReadCompleted(TrialClient& trials,
                                                         const std::string& study,
                                                         const Objective& objective) {
  const double sign = objective.direction == Direction::kMaximize ? -1.0 : 1.0;
  std::vector<AssessedTrial> assessed;
  const auto take = [&](Trial& trial) {
    const auto* completed =
        trial.outcome.has_value() ? std::get_if<Completed>(&*trial.outcome) : nullptr;
    if (completed == nullptr || trial.demonstration) return absl::OkStatus();
    const auto value = completed->metrics.find(objective.metric);
    if (value != completed->metrics.end() && std::isfinite(value->second)) {
      assessed.push_back({std::move(trial.params), sign * value->second});
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(
      ForEachTrial(trials, study, {.filter = {.states = {TrialState::kCompleted}}}, take));
  return assessed;
}

// What is drawn and never modelled, such as a seed, moves the metric by chance only.
SearchSpace Modelled(const SearchSpace& space) {
  SearchSpace modelled = space;
  std::erase_if(modelled.parameters,
                [](const Parameter& parameter) { return !parameter.modelled; });
  return modelled;
}

void PrintTable(const std::vector<ParameterImportance>& shares, Session& session) {
  Table table({{"PARAMETER"}, {"SHARE", Align::kRight}, {""}});
  for (const ParameterImportance& parameter : shares) {
    const auto length = static_cast<size_t>(std::lround(kBarWidth * parameter.share));
    table.AddRow({parameter.name, absl::StrFormat("%.1f %%", 100.0 * parameter.share),
                  std::string(length, '#')});
  }
  session.out << table.Render(session.terminal.columns, session.terminal.colors);
}

}  // namespace

absl::Status ShowImportance(Session& session, const ImportanceOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  HPO_ASSIGN_OR_RETURN(const Objective objective, FindObjective(study.spec, options.metric));
  HPO_ASSIGN_OR_RETURN(const std::vector<AssessedTrial> trials,
                       ReadCompleted(session.client.trials(), name, objective));
  const auto method = options.method == "fanova" ? FanovaImportance : PedAnovaImportance;
  const auto shares = method(Modelled(study.spec.space), trials);
  if (!shares.ok()) return Annotate(shares.status(), absl::StrCat("study ", name));
  if (!session.json) {
    session.out << name << ": what moved " << objective.metric << ", by " << options.method
                << " of " << trials.size() << " completed trials\n\n";
    PrintTable(*shares, session);
    return absl::OkStatus();
  }
  Json parameters = Json::array();
  for (const ParameterImportance& parameter : *shares) {
    parameters.push_back({{"parameter", parameter.name}, {"share", parameter.share}});
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
