#include "sampler/median_pruner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"

namespace hpo {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t NumCompleted(const History& history) {
  return std::count_if(history.trials().begin(), history.trials().end(), [](const auto& entry) {
    return entry.second.state == TrialState::kCompleted;
  });
}

// Smallest of the trial's values; NaN when all are.
double BestValue(const HistoryTrial& trial) {
  double best = kNan;
  for (const auto& [step, value] : trial.intermediate) {
    if (std::isnan(best) || value < best) best = value;
  }
  return best;
}

std::vector<double> CompletedValuesAt(const History& history, int64_t step) {
  std::vector<double> values;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.state != TrialState::kCompleted) continue;
    const auto found = trial.intermediate.find(step);
    if (found != trial.intermediate.end() && !std::isnan(found->second)) {
      values.push_back(found->second);
    }
  }
  return values;
}

// NaN for none, and for opposite infinities in the middle.
double Median(std::vector<double> values) {
  if (values.empty()) return kNan;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || values[middle - 1] == values[middle]) return values[middle];
  return 0.5 * values[middle - 1] + 0.5 * values[middle];
}

}  // namespace

bool MedianPruner::IsCheckPoint(const HistoryTrial& trial) const {
  const int64_t step = trial.intermediate.rbegin()->first;
  if (step < spec_.warmup_steps) return false;
  const int64_t interval = std::max<int64_t>(spec_.interval_steps, 1);
  const int64_t check_point =
      spec_.warmup_steps + (step - spec_.warmup_steps) / interval * interval;
  return trial.intermediate.lower_bound(check_point)->first == step;
}

std::optional<PruneDecision> MedianPruner::Decide(const History& history, TrialNumber trial) const {
  const auto found = history.trials().find(trial);
  if (found == history.trials().end() || found->second.intermediate.empty()) return std::nullopt;
  if (NumCompleted(history) < std::max<int64_t>(spec_.startup_trials, 1)) return std::nullopt;
  if (!IsCheckPoint(found->second)) return std::nullopt;

  const int64_t step = found->second.intermediate.rbegin()->first;
  PruneDecision decision{.pruner = "median", .step = step, .why = {}};
  const double best = BestValue(found->second);
  if (std::isnan(best)) {
    decision.why = absl::StrFormat("no finite value up to step %d", step);
    return decision;
  }
  const std::vector<double> others = CompletedValuesAt(history, step);
  const double median = Median(others);
  if (!(best > median)) return std::nullopt;
  const double sign = direction_ == Direction::kMaximize ? -1.0 : 1.0;
  decision.why = absl::StrFormat("best %.4g up to step %d; the median of %d trials is %.4g",
                                 sign * best, step, others.size(), sign * median);
  return decision;
}

}  // namespace hpo
