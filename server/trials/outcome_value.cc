#include "server/trials/outcome_value.h"

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hpo::server {
namespace {

constexpr size_t kNamesTold = 10;

std::string NamesIn(std::vector<std::string> names) {
  if (names.empty()) return "no metrics";
  if (names.size() <= kNamesTold) return absl::StrJoin(names, ", ");
  const size_t left = names.size() - kNamesTold;
  names.resize(kNamesTold);
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", left, " more");
}

std::vector<std::string> NamesBut(const Metrics& metrics, const std::string& left_out) {
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) {
    if (name != left_out) names.push_back(name);
  }
  return names;
}

std::optional<Failed> WhyNotCompleted(const StudySpec& spec, const Metrics& metrics) {
  std::vector<std::string> missing;
  for (const Objective& objective : spec.objectives) {
    if (!metrics.contains(objective.metric)) missing.push_back(objective.metric);
  }
  if (!missing.empty()) {
    return Failed{.failure_class = FailureClass::kBadConfiguration,
                  .message = absl::StrCat(
                      "expected the study's objective", missing.size() > 1 ? "s " : " ",
                      absl::StrJoin(missing, " and "), ", got ", NamesIn(NamesBut(metrics, "")))};
  }
  for (const Objective& objective : spec.objectives) {
    const double value = metrics.at(objective.metric);
    if (std::isfinite(value)) continue;
    return Failed{.failure_class = FailureClass::kDiverged,
                  .message = absl::StrCat("expected a finite number as the study's objective ",
                                          objective.metric, ", got ", value, "; with it came ",
                                          NamesIn(NamesBut(metrics, objective.metric)))};
  }
  return std::nullopt;
}

}  // namespace

TrialOutcome CheckedOutcome(const StudySpec& spec, const TrialOutcome& outcome) {
  const auto* completed = std::get_if<Completed>(&outcome);
  if (completed == nullptr) return outcome;
  std::optional<Failed> failed = WhyNotCompleted(spec, completed->metrics);
  return failed ? TrialOutcome(*std::move(failed)) : outcome;
}

std::optional<double> ValueOf(const TrialOutcome& outcome, const Objective& objective) {
  const auto* completed = std::get_if<Completed>(&outcome);
  if (completed == nullptr) return std::nullopt;
  const auto found = completed->metrics.find(objective.metric);
  if (found == completed->metrics.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

void SetOutcome(const StudySpec& spec, const TrialOutcome& outcome, Trial& trial) {
  trial.state = StateOf(outcome);
  trial.outcome = outcome;
  trial.value = ValueOf(outcome, spec.objectives.front());
  // Judged at the end alone: what a trial reports on its way may still change.
  const auto* completed = std::get_if<Completed>(&outcome);
  trial.violation = completed == nullptr ? 0.0 : ViolationOf(spec.constraints, completed->metrics);
}

}  // namespace hpo::server
