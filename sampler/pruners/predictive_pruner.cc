#include "sampler/pruners/predictive_pruner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/split_mix.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"
#include "sampler/pruners/check_points.h"
#include "sampler/pruners/reports.h"

namespace hpo::sampler {
namespace {

// The share of the trials that have ended which is good.
constexpr double kGood = 0.25;
// Of the prior: the correlation of a value's normal score with the end's, and its weight in trials.
constexpr double kCorrelation = 0.7;
constexpr double kPriorTrials = 3.0;
constexpr size_t kNeighbours = 6;  // on either side
// So many of the newest trials that have ended tell what the next one may come to.
constexpr int kNewest = 12;
// One of so many trials is never stopped.
constexpr uint64_t kObserved = 6;

// Known of another trial: its value at the step, and how it ended; kWorstLoss where it did
// so badly, nullopt while it runs or was stopped.
struct Seen {
  double value = 0.0;
  std::optional<double> end;
};

// Its last value up to `step`, where it has gone so far.
std::optional<double> ValueAt(const HistoryTrial& trial, int64_t step) {
  const auto after = trial.intermediate.upper_bound(step);
  if (after == trial.intermediate.begin()) return std::nullopt;
  const bool went_so_far = trial.state == TrialState::kCompleted ||
                           after != trial.intermediate.end() || std::prev(after)->first == step;
  if (!went_so_far) return std::nullopt;
  return std::prev(after)->second;
}

// How a completed trial ended.
double EndOf(const HistoryTrial& trial) {
  const bool counts = IsFeasible(trial) && !trial.losses.empty();
  return counts ? NanAsWorst(trial.losses.front()) : kWorstLoss;
}

std::vector<Seen> SeenAt(const History& history, const HistoryTrial& asking, int64_t step) {
  std::vector<Seen> seen;
  std::optional<CheckPoints> points;
  if (asking.by_epoch) points.emplace(history);
  for (const auto& [number, trial] : history.trials()) {
    if (trial.by_epoch != asking.by_epoch || number == asking.number ||
        trial.state == TrialState::kFailed)
      continue;
    const std::optional<double> value =
        points ? points->ValueAt(trial, step) : ValueAt(trial, step);
    if (!value) continue;
    Seen one{.value = NanAsWorst(*value), .end = std::nullopt};
    if (trial.state == TrialState::kCompleted) one.end = EndOf(trial);
    seen.push_back(one);
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const Seen& a, const Seen& b) { return a.value < b.value; });
  return seen;
}

// Of being good, by the rank of `value` among the others alone.
double PriorOf(const std::vector<Seen>& seen, double value) {
  double better = 0.0;
  for (const Seen& other : seen) {
    better += other.value < value ? 1.0 : other.value == value ? 0.5 : 0.0;
  }
  const double rank = (better + 1.0) / (static_cast<double>(seen.size()) + 2.0);
  const double score = NormalQuantileOfLog(Log(rank));
  const double limit = LowerNormalQuantile(kGood);
  return Exp(
      LogNormalCdf((limit - kCorrelation * score) / std::sqrt(1.0 - kCorrelation * kCorrelation)));
}

// The end up to which trials are good; nullopt for too few.
std::optional<double> GoodUpTo(const std::vector<Seen>& seen) {
  std::vector<double> ends;
  for (const Seen& other : seen) {
    if (other.end) ends.push_back(*other.end);
  }
  const auto num_good = static_cast<size_t>(kGood * static_cast<double>(ends.size()));
  if (num_good == 0) return std::nullopt;
  std::nth_element(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(num_good - 1), ends.end());
  return ends[num_good - 1];
}

// How many of the nearest that have ended are good, and how many they are.
std::pair<double, double> CountNearest(const std::vector<Seen>& seen, double value, double good) {
  const auto at = std::lower_bound(seen.begin(), seen.end(), value,
                                   [](const Seen& s, double v) { return s.value < v; });
  double num_good = 0.0;
  double num = 0.0;
  const auto count = [&](auto from, auto to) {
    size_t taken = 0;
    for (auto other = from; other != to && taken < kNeighbours; ++other) {
      if (!other->end) continue;
      ++taken;
      num += 1.0;
      num_good += *other->end <= good ? 1.0 : 0.0;
    }
  };
  count(at, seen.end());
  count(std::make_reverse_iterator(at), seen.rend());
  return {num_good, num};
}

// Of a new trial to be good, at most that of any: the share of good ones among the newest, those
// that were stopped being none, with the prior.
double ChanceOfNew(const History& history, double good_up_to) {
  double good = kPriorTrials * kGood;
  double of = kPriorTrials;
  int left = kNewest;
  for (auto it = history.trials().rbegin(); it != history.trials().rend() && left > 0; ++it) {
    const HistoryTrial& trial = it->second;
    const bool completed = trial.state == TrialState::kCompleted;
    if (!completed && trial.state != TrialState::kPruned) continue;
    --left;
    of += 1.0;
    good += completed && EndOf(trial) <= good_up_to ? 1.0 : 0.0;
  }
  return std::min(kGood, good / of);
}

// How many times as likely as a new trial it is to be good: one standard deviation above what is
// expected, as a beta distribution has it.
double WorthOf(const History& history, const std::vector<Seen>& seen, double value) {
  double good = kPriorTrials * PriorOf(seen, value);
  double of = kPriorTrials;
  double chance_of_new = kGood;
  if (const std::optional<double> limit = GoodUpTo(seen)) {
    const auto [num_good, num] = CountNearest(seen, value, *limit);
    good += num_good;
    of += num;
    chance_of_new = ChanceOfNew(history, *limit);
  }
  const double mean = good / of;
  return (mean + std::sqrt(mean * (1.0 - mean) / (of + 1.0))) / chance_of_new;
}

// Of the trial that is judged there; by step it is its last.
double LossAt(const History& history, const HistoryTrial& trial, int64_t point) {
  if (!trial.by_epoch) return trial.intermediate.rbegin()->second;
  return CheckPoints(history).ValueAt(trial, point).value_or(kWorstLoss);
}

// Spread evenly over the numbers.
bool GoesOnWhatever(TrialNumber trial) {
  return SplitMix64(static_cast<uint64_t>(trial.value) + kSplitMixStep) % kObserved == 0;
}

}  // namespace

std::optional<PruneDecision> PredictivePruner::Decide(const History& history,
                                                      TrialNumber trial) const {
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr || GoesOnWhatever(trial)) return std::nullopt;
  const std::optional<int64_t> point = PointToJudge(history, *reporting, spec_);
  if (!point) return std::nullopt;
  const int64_t step = *point;
  const double last = LossAt(history, *reporting, step);
  const std::optional<int64_t> longest = LongestCompleted(history, *reporting);
  if (!longest || step >= *longest) return std::nullopt;
  const std::vector<Seen> seen = SeenAt(history, *reporting, step);
  if (seen.empty()) return std::nullopt;
  const double left = 1.0 - static_cast<double>(step) / static_cast<double>(*longest);
  const double worth = WorthOf(history, seen, NanAsWorst(last));
  if (worth >= left) return std::nullopt;
  return PruneDecision{
      .pruner = spec_.type,
      .step = step,
      .why = absl::StrFormat("%.4g after %s, with %.0f %% of a trial left: at most %.2g times "
                             "as likely to end among the best quarter as a new trial",
                             InUnitOf(direction_, last), NameOf(*reporting, step), 100.0 * left,
                             worth)};
}

}  // namespace hpo::sampler
