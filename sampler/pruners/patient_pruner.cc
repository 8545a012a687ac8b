#include "sampler/pruners/patient_pruner.h"

#include <iterator>

#include "absl/strings/str_format.h"
#include "sampler/pruners/reports.h"

namespace hpo::sampler {

std::optional<PruneDecision> PatientPruner::Decide(const History& history,
                                                   TrialNumber trial) const {
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr) return std::nullopt;
  const bool at_point = !reporting->by_epoch || PointToJudge(history, *reporting, {}).has_value();
  if (!at_point) return std::nullopt;
  std::optional<Curve> at_check_points;
  const Curve& reports = ComparedCurve(history, *reporting, at_check_points);
  if (static_cast<int64_t>(reports.size()) <= spec_.patience + 1) return std::nullopt;
  const auto recent = std::prev(reports.end(), spec_.patience + 1);
  const double since = BestValue(recent, reports.end());
  // The best of all is that of the reports before where it is better than the recent ones' best;
  // else none before is better than that.
  const double before = reports.best();
  if (!(before < since) || !(before + spec_.min_delta < since)) return std::nullopt;

  PruneDecision decision{.pruner = "patient", .step = reports.rbegin()->first, .why = {}};
  decision.why = absl::StrFormat("best %.4g of the last %d reports up to %s; before them %.4g",
                                 InUnitOf(direction_, since), spec_.patience + 1,
                                 NameOf(*reporting, decision.step), InUnitOf(direction_, before));
  if (wrapped_ == nullptr) return decision;
  const std::optional<PruneDecision> stop = wrapped_->Decide(history, trial);
  if (!stop.has_value()) return std::nullopt;
  decision.why = absl::StrFormat("%s; %s: %s", decision.why, stop->pruner, stop->why);
  return decision;
}

}  // namespace hpo::sampler
