#include "sampler/pruners/successive_halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "sampler/pruners/check_points.h"
#include "sampler/pruners/reports.h"

namespace hpo::sampler {
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

// Where rungs end that trials like `asking` have in common, and what they had there.
class Rungs {
 public:
  // Up to the last report of `asking`, which has a value at each.
  Rungs(const History& history, const HistoryTrial& asking, const HalvingOptions& options)
      : ends_(RungEnds(options, asking.intermediate.rbegin()->first)) {
    if (!asking.by_epoch) return;
    points_.emplace(history);
    for (int64_t& end : ends_) end = points_->AtOrAfter(end);
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    std::erase_if(ends_, [&](int64_t end) { return !ValueAt(asking, end); });
  }

  const std::vector<int64_t>& ends() const { return ends_; }

  // The report that ends the rung; the end of the trial's curve where none does.
  Curve::const_iterator EndOf(const HistoryTrial& trial, int64_t end) const {
    return points_ ? points_->EndOf(trial, end) : trial.intermediate.lower_bound(end);
  }

  // nullopt: it has not ended the rung, or had reported nothing before.
  std::optional<double> ValueAt(const HistoryTrial& trial, int64_t end) const {
    const auto report = EndOf(trial, end);
    if (report == trial.intermediate.end()) return std::nullopt;
    return points_ ? points_->ValueAt(trial, end) : report->second;
  }

 private:
  std::vector<int64_t> ends_;
  std::optional<CheckPoints> points_;  // of trials that report epochs
};

// The trial's value at each rung it has ended, in their order; nullopt where it had none yet.
std::vector<std::optional<double>> RungValues(const HistoryTrial& trial, const Rungs& rungs) {
  std::vector<std::optional<double>> values;
  for (const int64_t end : rungs.ends()) {
    const auto report = rungs.EndOf(trial, end);
    if (report == trial.intermediate.end()) return values;
    const std::optional<double> value = rungs.ValueAt(trial, end);
    if (value && std::isnan(*value)) return values;
    values.push_back(value);
    const bool last = report == std::prev(trial.intermediate.end());
    if (last && WasStopped(trial)) return values;
  }
  return values;
}

// Values at each rung of the other trials that compete.
std::vector<std::vector<double>> CompetingValues(const History& history, const HistoryTrial& asking,
                                                 const Rungs& rungs,
                                                 const std::function<bool(TrialNumber)>& competes) {
  std::vector<std::vector<double>> at_rung(rungs.ends().size());
  for (const auto& [number, trial] : history.trials()) {
    if (number == asking.number || trial.violation > 0.0 || !competes(number)) continue;
    if (trial.intermediate.empty() || trial.by_epoch != asking.by_epoch) continue;
    const std::vector<std::optional<double>> values = RungValues(trial, rungs);
    for (size_t rung = 0; rung < values.size(); ++rung) {
      if (values[rung]) at_rung[rung].push_back(*values[rung]);
    }
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
  const int64_t step = reporting->intermediate.rbegin()->first;
  const int64_t newest_from = reporting->by_epoch ? history.NewestFrom(*reporting) : step;
  const Rungs rungs(history, *reporting, options);
  const std::vector<int64_t>& ends = rungs.ends();
  const auto ends_newly = [&](int64_t end) {
    return rungs.EndOf(*reporting, end)->first >= newest_from;
  };
  if (ends.empty() || !ends_newly(ends.back())) return std::nullopt;
  const auto others = CompetingValues(history, *reporting, rungs, competes);
  for (size_t rung = 0; rung < ends.size(); ++rung) {
    if (!ends_newly(ends[rung])) continue;
    const std::optional<double> value = rungs.ValueAt(*reporting, ends[rung]);
    const std::string why = WhyStopped(value.value(), others[rung], options, direction);
    if (why.empty()) continue;
    return PruneDecision{.step = step,
                         .why = absl::StrFormat("end of rung %d (%s): %s", rung,
                                                NameOf(*reporting, ends[rung]), why)};
  }
  return std::nullopt;
}

}  // namespace hpo::sampler
