#include "sampler/trial_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
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

// One number per completed trial, smaller is better.
std::vector<double> KeysOfCompleted(const std::vector<const HistoryTrial*>& trials) {
  const bool several = !trials.empty() && trials.front()->losses.size() > 1;
  if (several) return NonDominationRanks(trials);
  std::vector<double> keys;
  for (const HistoryTrial* trial : trials) {
    keys.push_back(trial->losses.empty() ? std::numeric_limits<double>::infinity()
                                         : WorstIfNan(trial->losses.front()));
  }
  return keys;
}

// Trials without any report come last.
std::tuple<bool, int64_t, double> KeyOfPruned(const HistoryTrial& trial) {
  if (trial.intermediate.empty()) return {true, 0, 0.0};
  const auto& [step, value] = *trial.intermediate.rbegin();
  return {false, -step, WorstIfNan(value)};
}

// `trials` by key, ties in their order.
template <typename Key>
void AppendSorted(const std::vector<const HistoryTrial*>& trials, const std::vector<Key>& keys,
                  std::vector<const HistoryTrial*>& out) {
  std::vector<std::pair<Key, size_t>> order;
  for (size_t i = 0; i < trials.size(); ++i) order.emplace_back(keys[i], i);
  std::sort(order.begin(), order.end());
  for (const auto& entry : order) out.push_back(trials[entry.second]);
}

void SortByNumber(std::vector<const HistoryTrial*>& trials) {
  std::sort(trials.begin(), trials.end(),
            [](const HistoryTrial* a, const HistoryTrial* b) { return a->number < b->number; });
}

}  // namespace

int64_t NumBelow(int64_t n) {
  constexpr int64_t kMost = 25;
  return std::min((n + 9) / 10, kMost);
}

TrialSplit SplitTrials(const std::vector<JudgedTrial>& trials, int64_t num_below) {
  std::vector<const HistoryTrial*> completed;
  std::vector<const HistoryTrial*> pruned;
  std::vector<const HistoryTrial*> infeasible;
  std::vector<std::tuple<bool, int64_t, double>> pruned_keys;
  std::vector<double> violations;
  TrialSplit split;
  for (const auto& [trial, violation] : trials) {
    if (trial->state == TrialState::kRunning) {
      split.above.push_back(trial);
    } else if (violation > 0.0) {
      infeasible.push_back(trial);
      violations.push_back(violation);
    } else if (trial->state == TrialState::kCompleted) {
      completed.push_back(trial);
    } else {
      pruned.push_back(trial);
      pruned_keys.push_back(KeyOfPruned(*trial));
    }
  }
  std::vector<const HistoryTrial*> ordered;
  AppendSorted(completed, KeysOfCompleted(completed), ordered);
  AppendSorted(pruned, pruned_keys, ordered);
  AppendSorted(infeasible, violations, ordered);
  const size_t cut = std::min(static_cast<size_t>(std::max<int64_t>(num_below, 0)), ordered.size());
  const auto middle = ordered.begin() + static_cast<ptrdiff_t>(cut);
  split.below.assign(ordered.begin(), middle);
  split.above.insert(split.above.end(), middle, ordered.end());
  SortByNumber(split.below);
  SortByNumber(split.above);
  return split;
}

}  // namespace hpo
