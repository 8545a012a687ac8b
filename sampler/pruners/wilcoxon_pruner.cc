#include "sampler/pruners/wilcoxon_pruner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "sampler/pruners/reports.h"
#include "sampler/pruners/signed_rank.h"

namespace hpo::sampler {
namespace {

// Of those that report as `like` does; nullptr where none has completed with a value.
const HistoryTrial* BestFeasible(const History& history, const HistoryTrial& like) {
  const HistoryTrial* best = nullptr;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.losses.empty() || !IsFeasible(trial)) continue;
    if (!trial.intermediate.empty() && trial.by_epoch != like.by_epoch) continue;
    if (best == nullptr || trial.losses.front() < best->losses.front()) best = &trial;
  }
  return best;
}

std::vector<double> DifferencesAtCommonSteps(const Curve& values, const Curve& best) {
  std::vector<double> differences;
  for (const auto& [step, value] : values) {
    const auto found = best.find(step);
    if (found != best.end()) differences.push_back(value - found->second);
  }
  return differences;
}

}  // namespace

std::optional<PruneDecision> WilcoxonPruner::Decide(const History& history,
                                                    TrialNumber trial) const {
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr) return std::nullopt;
  const bool at_point = !reporting->by_epoch || PointToJudge(history, *reporting, {}).has_value();
  if (!at_point) return std::nullopt;
  const HistoryTrial* best = BestFeasible(history, *reporting);
  if (best == nullptr || best->intermediate.empty()) return std::nullopt;
  std::optional<Curve> at_check_points;
  std::optional<Curve> best_at_check_points;
  const Curve& values = ComparedCurve(history, *reporting, at_check_points);
  const Curve& best_values = ComparedCurve(history, *best, best_at_check_points);
  const bool all_finite = values.all_finite() && best_values.all_finite();
  if (!all_finite || best_values.empty()) return std::nullopt;
  const double mean = values.mean();
  const double best_mean = best_values.mean();
  // First, as it takes no look at all the reports.
  if (best_mean >= mean) return std::nullopt;
  const std::vector<double> differences = DifferencesAtCommonSteps(values, best_values);
  const auto num_pairs = static_cast<int64_t>(differences.size());
  if (num_pairs < std::max<int64_t>(2, spec_.startup_steps)) return std::nullopt;
  const double p = SignedRankTest(differences);
  if (!(p < spec_.p_threshold)) return std::nullopt;
  return PruneDecision{
      .pruner = "wilcoxon",
      .step = reporting->intermediate.rbegin()->first,
      .why = absl::StrFormat("mean %.4g, worse than trial %d, the best, with %.4g: p = %.2g on %d "
                             "common steps, below %g",
                             InUnitOf(direction_, mean), best->number.value,
                             InUnitOf(direction_, best_mean), p, num_pairs, spec_.p_threshold)};
}

}  // namespace hpo::sampler
