// The numbers by which a trial is ranked.
#pragma once

#include <cmath>
#include <optional>
#include <variant>

#include "common/study.h"
#include "common/trial.h"

namespace hpo {

// What a completed trial reached in `objective`; nullopt where it ended otherwise, has not told it,
// or told none that is finite.
inline std::optional<double> ValueOf(const TrialOutcome& outcome, const Objective& objective) {
  const auto* completed = std::get_if<Completed>(&outcome);
  if (completed == nullptr) return std::nullopt;
  const auto found = completed->metrics.find(objective.metric);
  if (found == completed->metrics.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

// Ends `trial` with `outcome`: its state, and by what the study ranks it.
inline void SetOutcome(const StudySpec& spec, const TrialOutcome& outcome, Trial& trial) {
  trial.state = StateOf(outcome);
  trial.outcome = outcome;
  trial.value = ValueOf(outcome, spec.objectives.front());
  // Judged at the end alone: what a trial reports on its way may still change.
  const auto* completed = std::get_if<Completed>(&outcome);
  trial.violation = completed == nullptr ? 0.0 : ViolationOf(spec.constraints, completed->metrics);
}

}  // namespace hpo
