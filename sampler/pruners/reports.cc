#include "sampler/pruners/reports.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpo {

const HistoryTrial* FindReporting(const History& history, TrialNumber trial) {
  const auto found = history.trials().find(trial);
  if (found == history.trials().end() || found->second.intermediate.empty()) return nullptr;
  return &found->second;
}

bool IsCheckPoint(const HistoryTrial& trial, const PrunerSpec& spec) {
  const int64_t step = trial.intermediate.rbegin()->first;
  if (step < spec.warmup_steps) return false;
  const int64_t interval = std::max<int64_t>(spec.interval_steps, 1);
  const int64_t check_point = spec.warmup_steps + (step - spec.warmup_steps) / interval * interval;
  return trial.intermediate.lower_bound(check_point)->first == step;
}

std::optional<int64_t> LongestCompleted(const History& history) {
  std::optional<int64_t> longest;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.state != TrialState::kCompleted || trial.intermediate.empty()) continue;
    longest = std::max(longest.value_or(0), trial.intermediate.rbegin()->first);
  }
  return longest;
}

double BestValue(std::map<int64_t, double>::const_iterator begin,
                 std::map<int64_t, double>::const_iterator end) {
  double best = std::numeric_limits<double>::quiet_NaN();
  for (auto report = begin; report != end; ++report) {
    if (std::isnan(best) || report->second < best) best = report->second;
  }
  return best;
}

double InUnitOf(Direction direction, double value) {
  return direction == Direction::kMaximize ? -value : value;
}

}  // namespace hpo
