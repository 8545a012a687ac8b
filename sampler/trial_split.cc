#include "sampler/trial_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hpo {
namespace {

double WorstIfNan(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

bool Dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (WorstIfNan(a[i]) > WorstIfNan(b[i])) return false;
    better = better || WorstIfNan(a[i]) < WorstIfNan(b[i]);
  }
  return better;
}

// For each trial the number of rounds in which, removing the undominated ones, it was still there.
std::vector<double> NonDominationRanks(const std::vector<const HistoryTrial*>& trials) {
  constexpr double kUnranked = -1.0;
  std::vector<double> ranks(trials.size(), kUnranked);
  size_t num_ranked = 0;
  for (double rank = 0.0; num_ranked < trials.size(); rank += 1.0) {
    std::vector<size_t> front;
    for (size_t i = 0; i < trials.size(); ++i) {
      if (ranks[i] != kUnranked) continue;
      bool dominated = false;
      for (size_t j = 0; j < trials.size() && !dominated; ++j) {
        dominated = ranks[j] == kUnranked && Dominates(trials[j]->losses, trials[i]->losses);
      }
      if (!dominated) front.push_back(i);
    }
    for (const size_t i : front) ranks[i] = rank;
    num_ranked += front.size();
  }
  return ranks;
}

}  // namespace

QualityKey QualityKeyOf(const HistoryTrial& trial) {
  enum Tier { kCompleted, kPruned, kPrunedWithoutReport };
  if (trial.state == TrialState::kCompleted) {
    const double loss = trial.losses.empty() ? std::numeric_limits<double>::infinity()
                                             : WorstIfNan(trial.losses.front());
    return {kCompleted, 0, loss, trial.number};
  }
  if (trial.intermediate.empty()) return {kPrunedWithoutReport, 0, 0.0, trial.number};
  const auto& [step, value] = *trial.intermediate.rbegin();
  return {kPruned, -step, WorstIfNan(value), trial.number};
}

int64_t FewerBeside(int64_t count, int64_t num_running) {
  constexpr int64_t kUnnoticed = 7;
  constexpr int64_t kHalving = 56;  // so many more halve it
  const int64_t divisor = kHalving + std::max<int64_t>(num_running - kUnnoticed, 0);
  return (kHalving * count + divisor - 1) / divisor;
}

int64_t NumGood(int64_t n, int64_t num_running) {
  constexpr int64_t kMost = 25;
  return std::min(FewerBeside((n + 9) / 10, num_running), kMost);
}

std::vector<TrialNumber> BestTrials(std::span<const HistoryTrial* const> finished, int64_t count) {
  std::vector<const HistoryTrial*> several;  // completed, of more than one objective
  std::vector<QualityKey> keys;
  for (const HistoryTrial* trial : finished) {
    const bool ranked = trial->state == TrialState::kCompleted && trial->losses.size() > 1;
    if (ranked) several.push_back(trial);
    if (!ranked) keys.push_back(QualityKeyOf(*trial));
  }
  const std::vector<double> ranks = NonDominationRanks(several);
  for (size_t i = 0; i < several.size(); ++i) {
    QualityKey key = QualityKeyOf(*several[i]);
    std::get<double>(key) = ranks[i];
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.resize(std::min(keys.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  std::vector<TrialNumber> best;
  for (const QualityKey& key : keys) best.push_back(std::get<TrialNumber>(key));
  std::sort(best.begin(), best.end());
  return best;
}

}  // namespace hpo
