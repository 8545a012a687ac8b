#include "sampler/pruners/threshold_pruner.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "sampler/pruners/reports.h"

namespace hpo::sampler {

std::optional<PruneDecision> ThresholdPruner::Decide(const History& history,
                                                     TrialNumber trial) const {
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr || !IsCheckPoint(*reporting, spec_)) return std::nullopt;
  const auto& [step, loss] = *reporting->intermediate.rbegin();
  const double value = InUnitOf(direction_, loss);
  PruneDecision decision{.pruner = "threshold", .step = step, .why = {}};
  const std::string at = NameOf(*reporting, step);
  if (std::isnan(value)) {
    decision.why = absl::StrFormat("no finite value at %s", at);
  } else if (spec_.lower.has_value() && value < *spec_.lower) {
    decision.why = absl::StrFormat("%.4g at %s is below the limit %.4g", value, at, *spec_.lower);
  } else if (spec_.upper.has_value() && value > *spec_.upper) {
    decision.why = absl::StrFormat("%.4g at %s is above the limit %.4g", value, at, *spec_.upper);
  } else {
    return std::nullopt;
  }
  return decision;
}

}  // namespace hpo::sampler
