#include "sampler/pruners/percentile_pruner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "sampler/pruners/check_points.h"
#include "sampler/pruners/reports.h"

namespace hpo::sampler {
namespace {

int64_t NumFeasible(const History& history) {
  return std::count_if(history.trials().begin(), history.trials().end(),
                       [](const auto& entry) { return IsFeasible(entry.second); });
}

// NaN included.
std::vector<double> FeasibleValuesAtStep(const History& history, int64_t step) {
  std::vector<double> values;
  for (const auto& [number, trial] : history.trials()) {
    if (!IsFeasible(trial) || trial.by_epoch) continue;
    const auto found = trial.intermediate.find(step);
    if (found != trial.intermediate.end()) values.push_back(found->second);
  }
  return values;
}

std::vector<double> FeasibleValuesAtEpoch(const History& history, int64_t point) {
  std::vector<double> values;
  const CheckPoints points(history);
  for (const auto& [number, trial] : history.trials()) {
    if (!IsFeasible(trial) || !trial.by_epoch) continue;
    const std::optional<double> value = points.ValueAt(trial, point);
    if (value) values.push_back(*value);
  }
  return values;
}

// Linear interpolation between the two values next to rank (n - 1) * percent / 100, from the nearer
// of them. NaN for none. `values` holds no NaN.
double Percentile(std::vector<double> values, double percent) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double rank = static_cast<double>(values.size() - 1) * (percent / 100.0);
  const auto below = static_cast<size_t>(rank);
  const double share = rank - static_cast<double>(below);
  const double low = values[below];
  const double high = values[std::min(below + 1, values.size() - 1)];
  return share >= 0.5 ? high - (high - low) * (1.0 - share) : low + (high - low) * share;
}

}  // namespace

// In the metric's own sign, so that the interpolation rounds as it does there.
double PercentilePruner::LossPercentile(const std::vector<double>& losses) const {
  const double best_share = spec_.type == "median" ? 50.0 : spec_.percentile;
  std::vector<double> values;
  for (const double loss : losses) {
    if (!std::isnan(loss)) values.push_back(InUnitOf(direction_, loss));
  }
  const bool maximize = direction_ == Direction::kMaximize;
  return InUnitOf(direction_,
                  Percentile(std::move(values), maximize ? 100.0 - best_share : best_share));
}

std::optional<PruneDecision> PercentilePruner::Decide(const History& history,
                                                      TrialNumber trial) const {
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr) return std::nullopt;
  const std::optional<int64_t> point = PointToJudge(history, *reporting, spec_);
  if (!point) return std::nullopt;
  if (NumFeasible(history) < std::max<int64_t>(spec_.startup_trials, 1)) return std::nullopt;

  PruneDecision decision{.pruner = spec_.type, .step = *point, .why = {}};
  std::optional<Curve> at_check_points;
  const double best = ComparedCurve(history, *reporting, at_check_points).best();
  if (std::isnan(best)) {
    decision.why = absl::StrFormat("no finite value up to %s", NameOf(*reporting, *point));
    return decision;
  }
  const std::vector<double> others = reporting->by_epoch ? FeasibleValuesAtEpoch(history, *point)
                                                         : FeasibleValuesAtStep(history, *point);
  if (static_cast<int64_t>(others.size()) < spec_.min_trials) return std::nullopt;
  const double limit = LossPercentile(others);
  if (!(best > limit)) return std::nullopt;
  const std::string group =
      spec_.type == "median"
          ? absl::StrFormat("the median of %d trials is", others.size())
          : absl::StrFormat("the best %g %% of %d trials end at", spec_.percentile, others.size());
  decision.why = absl::StrFormat("best %.4g up to %s; %s %.4g", InUnitOf(direction_, best),
                                 NameOf(*reporting, *point), group, InUnitOf(direction_, limit));
  return decision;
}

}  // namespace hpo::sampler
