#include "sampler/pruners/check_points.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>

namespace hpo::sampler {
namespace {

// At most so many of the longest trial.
constexpr int64_t kMostPoints = 100;
// Part of a distance by which rounded epochs may differ from what they were rounded from.
constexpr int64_t kRoundingPart = 1000;

// Its first report after epoch 0; the end of its curve where it has none, or counts for none here:
// a completed trial that has reported only once, at its end.
Curve::const_iterator FirstOf(const HistoryTrial& trial) {
  const Curve& curve = trial.intermediate;
  const auto first = curve.upper_bound(0);
  const bool once = first != curve.end() && std::next(first) == curve.end();
  return once && trial.state == TrialState::kCompleted ? curve.end() : first;
}

// From `origin` to its first report, or between two of them, the widest; of even ones the mean,
// which rounding spoils least.
int64_t DistanceOf(const HistoryTrial& trial, int64_t origin) {
  const Curve& curve = trial.intermediate;
  const auto first = FirstOf(trial);
  if (first == curve.end()) return 0;
  const int64_t widest = std::max(curve.widest_gap(), first->first - origin);
  const int64_t num_reports = std::ssize(curve) - (curve.begin() == first ? 0 : 1);
  const int64_t mean = (curve.rbegin()->first - origin) / num_reports;
  return std::abs(widest - mean) <= widest / kRoundingPart + 1 ? mean : widest;
}

}  // namespace

CheckPoints::CheckPoints(const History& history) {
  int64_t longest = 0;
  int64_t widest = 0;
  int64_t earliest = std::numeric_limits<int64_t>::max();
  for (const auto& [number, trial] : history.trials()) {
    if (!trial.by_epoch || trial.intermediate.empty()) continue;
    longest = std::max(longest, trial.intermediate.rbegin()->first);
    repeated_ = repeated_ || trial.repeats_epochs;
    const auto first = FirstOf(trial);
    if (first == trial.intermediate.end()) continue;
    earliest = std::min(earliest, first->first);
    widest = std::max(widest, trial.intermediate.widest_gap());
  }
  // Where nobody reports from the start, as where epochs go on from an earlier training.
  const int64_t origin = widest == 0 || earliest > longest ? 0 : (earliest - 1) / widest * widest;
  int64_t distance = 0;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.by_epoch) distance = std::max(distance, DistanceOf(trial, origin));
  }
  if (distance == 0) distance = std::max<int64_t>(longest, 1);
  const int64_t num_points = longest / distance;
  apart_ = distance * std::max<int64_t>((num_points + kMostPoints - 1) / kMostPoints, 1);
  tolerance_ = apart_ / kRoundingPart;
}

int64_t CheckPoints::AtOrAfter(int64_t epoch) const {
  const int64_t number = epoch / apart_ + (epoch % apart_ > tolerance_ ? 1 : 0);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return number > kMost / apart_ ? kMost : number * apart_;
}

int64_t CheckPoints::LastOf(const HistoryTrial& trial) const {
  const bool may_be_repeated = repeated_ && trial.state != TrialState::kCompleted;
  const int64_t last =
      trial.intermediate.rbegin()->first - (may_be_repeated ? 2 * tolerance_ + 1 : 0);
  if (last < 0) return 0;
  const bool nearly = apart_ - last % apart_ <= tolerance_;
  return (last / apart_ + (nearly ? 1 : 0)) * apart_;
}

Curve::const_iterator CheckPoints::EndOf(const HistoryTrial& trial, int64_t point) const {
  const Curve& curve = trial.intermediate;
  const auto there = curve.lower_bound(point - tolerance_);
  if (!repeated_) return there;
  const auto beyond = curve.upper_bound(point + tolerance_);
  const bool ended = beyond == curve.end() && there != curve.end();
  return ended && trial.state == TrialState::kCompleted ? std::prev(beyond) : beyond;
}

std::optional<double> CheckPoints::ValueAt(const HistoryTrial& trial, int64_t point) const {
  const auto after = trial.intermediate.lower_bound(point - tolerance_);
  const bool none_before = after == trial.intermediate.begin();
  if (EndOf(trial, point) == trial.intermediate.end()) {
    if (trial.intermediate.empty() || trial.state != TrialState::kCompleted) return std::nullopt;
    return trial.intermediate.rbegin()->second;
  }
  if (after->first - point <= tolerance_) return after->second;
  if (none_before) return std::nullopt;
  const auto before = std::prev(after);
  const auto from = static_cast<double>(before->first);
  const auto to = static_cast<double>(after->first);
  const auto at = static_cast<double>(point);
  const double share = (to / at) * ((at - from) / (to - from));
  return before->second + share * (after->second - before->second);
}

Curve CheckPoints::CurveOf(const HistoryTrial& trial) const {
  Curve curve;
  if (trial.intermediate.empty()) return curve;
  const auto& [first, value] = *trial.intermediate.begin();
  if (first == 0) curve.Add(first, value);
  const int64_t last = LastOf(trial);
  for (int64_t number = 1; number <= last / apart_; ++number) {
    const std::optional<double> here = ValueAt(trial, number * apart_);
    if (here) curve.Add(number * apart_, *here);
  }
  return curve;
}

}  // namespace hpo::sampler
