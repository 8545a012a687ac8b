#include "sampler/pruners/reports.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "sampler/pruners/check_points.h"

namespace hpo::sampler {

const HistoryTrial* FindReporting(const History& history, TrialNumber trial) {
  const auto found = history.trials().find(trial);
  if (found == history.trials().end() || found->second.intermediate.empty()) return nullptr;
  return &found->second;
}

bool IsCheckPoint(const HistoryTrial& trial, const PrunerSpec& spec) {
  const int64_t step = trial.intermediate.rbegin()->first;
  const int64_t warmup = ProgressAfter(trial, spec.warmup_steps);
  if (step < warmup) return false;
  // Every report of an epoch, where an interval of one is all that is asked for.
  const bool each = trial.by_epoch && spec.interval_steps <= 1;
  const int64_t interval =
      each ? 1 : ProgressAfter(trial, std::max<int64_t>(spec.interval_steps, 1));
  const int64_t check_point = warmup + (step - warmup) / interval * interval;
  return trial.intermediate.lower_bound(check_point)->first == step;
}

std::optional<int64_t> PointToJudge(const History& history, const HistoryTrial& trial,
                                    const PrunerSpec& spec) {
  if (!trial.by_epoch) {
    if (!IsCheckPoint(trial, spec)) return std::nullopt;
    return trial.intermediate.rbegin()->first;
  }
  const CheckPoints points(history);
  const int64_t warmup = points.AtOrAfter(ProgressAfter(trial, spec.warmup_steps));
  // Every check point, where an interval of one is all that is asked for.
  const int64_t interval = spec.interval_steps <= 1
                               ? points.apart()
                               : points.AtOrAfter(ProgressAfter(trial, spec.interval_steps));
  const int64_t reached = points.LastOf(trial);
  if (reached == 0 || reached < warmup) return std::nullopt;
  int64_t point = warmup + (reached - warmup) / interval * interval;
  // Before the first, trials have learnt nothing.
  if (point == 0) point = points.apart();
  const bool newly = points.EndOf(trial, point)->first >= history.NewestFrom(trial);
  if (!newly || !points.ValueAt(trial, point)) return std::nullopt;
  return point;
}

const Curve& ComparedCurve(const History& history, const HistoryTrial& trial,
                           std::optional<Curve>& at_check_points) {
  if (!trial.by_epoch) return trial.intermediate;
  return at_check_points.emplace(CheckPoints(history).CurveOf(trial));
}

int64_t ProgressAfter(const HistoryTrial& trial, int64_t count) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / kEpoch;
  return trial.by_epoch ? std::min(count, kMost) * kEpoch : count;
}

std::string NameOf(const HistoryTrial& trial, int64_t progress) {
  if (!trial.by_epoch) return absl::StrCat("step ", progress);
  return absl::StrCat("epoch ", static_cast<double>(progress) / static_cast<double>(kEpoch));
}

std::optional<int64_t> LongestCompleted(const History& history, const HistoryTrial& like) {
  std::optional<int64_t> longest;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.state != TrialState::kCompleted || trial.intermediate.empty()) continue;
    if (trial.by_epoch != like.by_epoch) continue;
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

}  // namespace hpo::sampler
