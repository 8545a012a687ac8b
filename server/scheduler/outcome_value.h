// The number by which a trial is ranked.
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

}  // namespace hpo
