#include "sampler/priors/trial_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sampler/numeric/hypervolume.h"
#include "sampler/numeric/non_domination.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// So many more than are not noticed halve it; no fewer than a third are left.
constexpr int64_t kHalving = 18;

int64_t DivisorBeside(int64_t num_running) {
  constexpr int64_t kUnnoticed = 3;
  return kHalving + std::clamp<int64_t>(num_running - kUnnoticed, 0, 2 * kHalving);
}

// The losses of trials of several objectives, equally many each; a missing one is worst.
std::vector<std::vector<double>> LossesOf(const std::vector<const HistoryTrial*>& trials) {
  size_t most = 0;
  for (const HistoryTrial* trial : trials) most = std::max(most, trial->losses.size());
  std::vector<std::vector<double>> losses;
  for (const HistoryTrial* trial : trials) {
    std::vector<double>& row = losses.emplace_back(trial->losses);
    std::transform(row.begin(), row.end(), row.begin(), NanAsWorst);
    row.resize(most, std::numeric_limits<double>::infinity());
  }
  return losses;
}

// By what trials of several objectives are ordered, as far as it decides which are the best
// `count`: their rank, and half a rank more for those of the cut front that are left out.
std::vector<double> OrderOf(const std::vector<const HistoryTrial*>& trials, size_t count) {
  const std::vector<std::vector<double>> losses = LossesOf(trials);
  const std::vector<size_t> ranks = NonDominationRanks(losses, count);
  std::vector<double> order(ranks.begin(), ranks.end());
  std::vector<size_t> sizes(trials.size() + 1);
  for (const size_t rank : ranks) ++sizes[rank];
  size_t cut = 0;
  for (; count > sizes[cut]; ++cut) count -= sizes[cut];
  std::vector<size_t> front;
  std::vector<std::vector<double>> front_losses;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (ranks[i] != cut) continue;
    order[i] += 0.5;
    front.push_back(i);
    front_losses.push_back(losses[i]);
  }
  for (const size_t i : ChooseByHypervolume(front_losses, count)) order[front[i]] -= 0.5;
  return order;
}

}  // namespace

QualityKey QualityKeyOf(const HistoryTrial& trial) {
  enum Tier { kCompleted, kPruned, kPrunedWithoutReport, kInfeasible };
  if (trial.violation > 0.0) return {kInfeasible, 0, trial.violation, trial.number};
  if (trial.state == TrialState::kCompleted) {
    const double loss = trial.losses.empty() ? std::numeric_limits<double>::infinity()
                                             : NanAsWorst(trial.losses.front());
    return {kCompleted, 0, loss, trial.number};
  }
  if (trial.intermediate.empty()) return {kPrunedWithoutReport, 0, 0.0, trial.number};
  const auto& [step, value] = *trial.intermediate.rbegin();
  return {kPruned, -step, NanAsWorst(value), trial.number};
}

double ShareBeside(int64_t num_running) {
  return static_cast<double>(kHalving) / static_cast<double>(DivisorBeside(num_running));
}

int64_t FewerBeside(int64_t count, int64_t num_running) {
  const int64_t divisor = DivisorBeside(num_running);
  return (kHalving * count + divisor - 1) / divisor;
}

int64_t NumGood(int64_t n, int64_t num_running, bool several_objectives) {
  constexpr int64_t kMost = 100;
  const int64_t part = several_objectives ? 10 : 4;
  return std::min(FewerBeside((n + part - 1) / part, num_running), kMost);
}

std::vector<double> WeightsOfGood(size_t num_good, int64_t num_running) {
  const double power = 3.0 / ShareBeside(num_running);
  std::vector<double> weights;
  for (size_t place = num_good; place > 0; --place) {
    const double part = static_cast<double>(place) / static_cast<double>(num_good);
    weights.push_back(Exp(power * Log(part)));
  }
  return weights;
}

std::vector<TrialNumber> BestTrials(std::span<const HistoryTrial* const> finished, int64_t count) {
  std::vector<const HistoryTrial*> several;  // completed, of more than one objective
  std::vector<QualityKey> keys;
  for (const HistoryTrial* trial : finished) {
    const bool ranked = IsFeasible(*trial) && trial->losses.size() > 1;
    if (ranked) several.push_back(trial);
    if (!ranked) keys.push_back(QualityKeyOf(*trial));
  }
  const size_t num_best = static_cast<size_t>(std::max<int64_t>(count, 0));
  const std::vector<double> order = OrderOf(several, std::min(num_best, several.size()));
  for (size_t i = 0; i < several.size(); ++i) {
    QualityKey key = QualityKeyOf(*several[i]);
    std::get<double>(key) = order[i];
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.resize(std::min(keys.size(), num_best));
  std::vector<TrialNumber> best;
  for (const QualityKey& key : keys) best.push_back(std::get<TrialNumber>(key));
  std::sort(best.begin(), best.end());
  return best;
}

}  // namespace hpo::sampler
