#include "sampler/pruners/successive_halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "sampler/pruners/reports.h"

namespace hpo {
namespace {

// Steps at which rungs end, up to `last_step`.
std::vector<int64_t> RungEnds(const HalvingOptions& options, int64_t last_step) {
  std::vector<int64_t> ends;
  int64_t end = options.min_resource;
  for (int64_t power = 0; end <= last_step; ++power) {
    if (power >= options.skipped_rungs) ends.push_back(end);
    if (end > last_step / options.reduction_factor) break;
    end *= options.reduction_factor;
  }
  return ends;
}

bool WasStopped(const HistoryTrial& trial) {
  return trial.state == TrialState::kPruned && trial.prune_reason == PruneReason::kPruner;
}

// The trial's value at each rung it has ended, in their order.
std::vector<double> RungValues(const HistoryTrial& trial, const std::vector<int64_t>& ends) {
  std::vector<double> values;
  for (const int64_t end : ends) {
    const auto report = trial.intermediate.lower_bound(end);
    if (report == trial.intermediate.end() || std::isnan(report->second)) return values;
    values.push_back(report->second);
    const bool last = report == std::prev(trial.intermediate.end());
    if (last && WasStopped(trial)) return values;
  }
  return values;
}

// Values at each rung of the other trials that compete.
std::vector<std::vector<double>> CompetingValues(const History& history, const HistoryTrial& asking,
                                                 const std::vector<int64_t>& ends,
                                                 const std::function<bool(TrialNumber)>& competes) {
  std::vector<std::vector<double>> at_rung(ends.size());
  for (const auto& [number, trial] : history.trials()) {
    if (number == asking.number || trial.violation > 0.0 || !competes(number)) continue;
    if (trial.intermediate.empty() || trial.by_epoch != asking.by_epoch) continue;
    const std::vector<double> values = RungValues(trial, ends);
    for (size_t rung = 0; rung < values.size(); ++rung) at_rung[rung].push_back(values[rung]);
  }
  return at_rung;
}

// Why a trial with `value` stops at a rung that `others` have ended too; empty: it goes on.
std::string WhyStopped(double value, std::vector<double> others, const HalvingOptions& options,
                       Direction direction) {
  if (std::isnan(value)) return "no finite value";
  others.push_back(value);
  const auto num_trials = static_cast<int64_t>(others.size());
  if (num_trials <= options.bootstrap_count) {
    return absl::StrFormat("one of the first %d trials there, which all stop",
                           options.bootstrap_count);
  }
  const int64_t num_promoted = std::max<int64_t>(num_trials / options.reduction_factor, 1);
  const auto limit = others.begin() + (num_promoted - 1);
  std::nth_element(others.begin(), limit, others.end());
  if (value <= *limit) return "";
  return absl::StrFormat("%.4g, and the best %d of %d trials there end at %.4g",
                         InUnitOf(direction, value), num_promoted, num_trials,
                         InUnitOf(direction, *limit));
}

}  // namespace

std::optional<PruneDecision> DecideHalving(const History& history, TrialNumber trial,
                                           const HalvingOptions& options, Direction direction,
                                           const std::function<bool(TrialNumber)>& competes) {
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr) return std::nullopt;
  const auto& [step, value] = *reporting->intermediate.rbegin();
  const std::vector<int64_t> ends = RungEnds(options, step);
  if (ends.empty() || reporting->intermediate.lower_bound(ends.back())->first != step) {
    return std::nullopt;
  }
  const auto others = CompetingValues(history, *reporting, ends, competes);
  for (size_t rung = 0; rung < ends.size(); ++rung) {
    if (reporting->intermediate.lower_bound(ends[rung])->first != step) continue;
    const std::string why = WhyStopped(value, others[rung], options, direction);
    if (why.empty()) continue;
    return PruneDecision{.step = step,
                         .why = absl::StrFormat("end of rung %d (%s): %s", rung,
                                                NameOf(*reporting, ends[rung]), why)};
  }
  return std::nullopt;
}

}  // namespace hpo
