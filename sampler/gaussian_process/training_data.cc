#include "sampler/gaussian_process/training_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace hpo {
namespace {

constexpr size_t kLeastComparable = 4;

// What completed trials gained from `step` to their end, in the middle; nullopt for too few.
std::optional<double> MedianGain(const History& history, int64_t step) {
  std::vector<double> gains;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.state != TrialState::kCompleted || trial.losses.empty()) continue;
    const auto found = trial.intermediate.find(step);
    if (found == trial.intermediate.end()) continue;
    const double gain = trial.losses.front() - found->second;
    if (std::isfinite(gain)) gains.push_back(gain);
  }
  if (gains.size() < kLeastComparable) return std::nullopt;
  std::sort(gains.begin(), gains.end());
  return gains[gains.size() / 2];
}

// The loss that `trial` stands for; nullopt for none. Need not be finite.
std::optional<double> LossOf(const History& history, const HistoryTrial& trial) {
  if (trial.state == TrialState::kCompleted) {
    if (trial.losses.empty()) return std::nullopt;
    return trial.losses.front();
  }
  if (trial.intermediate.empty()) return std::nullopt;
  const auto& [step, value] = *trial.intermediate.rbegin();
  const std::optional<double> gain = MedianGain(history, step);
  if (!gain.has_value()) return std::nullopt;
  return value + *gain;
}

// Brings losses that are not finite to the ends of the finite ones; empties `data` of observations
// where there is none.
void MakeFinite(TrainingData& data) {
  std::optional<double> best;
  std::optional<double> worst;
  for (const double loss : data.losses) {
    if (!std::isfinite(loss)) continue;
    best = std::min(best.value_or(loss), loss);
    worst = std::max(worst.value_or(loss), loss);
  }
  if (!best.has_value()) {
    data.observed.clear();
    data.losses.clear();
    return;
  }
  for (double& loss : data.losses) {
    if (!std::isfinite(loss)) loss = loss < 0.0 ? *best : *worst;
  }
}

// Leaves the oldest out in blocks, so that what remains does not change with every trial.
void KeepNewestJudged(TrainingData& data) {
  constexpr size_t kMostJudged = 256;
  constexpr size_t kBlock = 64;
  if (data.judged.size() <= kMostJudged) return;
  const size_t surplus = (data.judged.size() - kMostJudged + kBlock - 1) / kBlock * kBlock;
  const auto count = static_cast<ptrdiff_t>(surplus);
  data.judged.erase(data.judged.begin(), data.judged.begin() + count);
  data.labels.erase(data.labels.begin(), data.labels.begin() + count);
}

}  // namespace

TrainingData CollectTrainingData(const History& history, const CodedSpace& space, Bytes capacity,
                                 MemoryPolicy policy) {
  TrainingData data;
  for (const auto& [number, trial] : history.trials()) {
    const bool violates = MemoryViolation(trial, capacity, policy) > 0.0;
    const bool running = trial.state == TrialState::kRunning;
    if (!violates && !running && (!IsFinished(trial) || EndedByMemory(trial))) continue;
    std::optional<Codes> codes = space.Encode(trial.params);
    if (!codes.has_value()) continue;
    if (violates || IsFinished(trial)) {
      data.judged.push_back(*codes);
      data.labels.push_back(violates ? 1.0 : -1.0);
      data.any_violation = data.any_violation || violates;
    }
    if (violates) continue;
    const std::optional<double> loss = running ? std::nullopt : LossOf(history, trial);
    if (loss.has_value()) {
      data.observed.push_back(*std::move(codes));
      data.losses.push_back(*loss);
    } else {
      data.fantasies.push_back(*std::move(codes));
    }
  }
  MakeFinite(data);
  KeepNewestJudged(data);
  return data;
}

std::vector<size_t> SelectObservations(std::span<const double> losses, size_t most) {
  std::vector<size_t> order(losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (losses.size() <= most) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return losses[a] < losses[b]; });
  const auto middle = order.begin() + static_cast<ptrdiff_t>(most / 2);
  std::sort(middle, order.end(), std::greater<size_t>());
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace hpo
