#include "sampler/gp/surrogate/training_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "sampler/numeric/packet_math.h"

namespace hpo::sampler {
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

// By the trials that a process over `space` learns from.
LossMeaning MeaningOf(const History& history, const CodedSpace& space, Bytes capacity,
                      MemoryPolicy policy) {
  LossMeaning meaning = LossMeaning::kObjective;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.state != TrialState::kCompleted || trial.losses.empty()) continue;
    const bool teaches =
        MemoryViolation(trial, capacity, policy) == 0.0 && space.Encode(trial.params).has_value();
    if (teaches && trial.violation == 0.0) return LossMeaning::kObjective;
    if (teaches) meaning = LossMeaning::kViolation;
  }
  return meaning;
}

// The loss that `trial` stands for; nullopt for none. Need not be finite.
std::optional<double> LossOf(const History& history, const HistoryTrial& trial,
                             LossMeaning meaning) {
  if (meaning == LossMeaning::kViolation) {
    if (trial.state != TrialState::kCompleted) return std::nullopt;
    return trial.violation;
  }
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
    data.feasible.clear();
    return;
  }
  for (double& loss : data.losses) {
    if (!std::isfinite(loss)) loss = loss < 0.0 ? *best : *worst;
  }
}

constexpr size_t kMostJudgedTrials = 256;

// How many of `count` labels of one kind are left out with `others` of the other. In blocks, so
// that what remains does not change with every trial.
size_t Surplus(size_t count, size_t others) {
  constexpr size_t kBlock = 64;
  const size_t most =
      std::max(kMostJudgedTrials / 2, kMostJudgedTrials - std::min(others, kMostJudgedTrials));
  return count <= most ? 0 : (count - most + kBlock - 1) / kBlock * kBlock;
}

// Leaves out the oldest of what is to be avoided and of the others, each to its own number: what
// was learned to be avoided is seldom met again.
void KeepNewest(LabelledCodes& labelled) {
  const size_t count = labelled.labels.size();
  if (count <= kMostJudgedTrials) return;
  const auto num_bad = static_cast<size_t>(std::count_if(
      labelled.labels.begin(), labelled.labels.end(), [](double label) { return label > 0.0; }));
  size_t surplus_bad = Surplus(num_bad, count - num_bad);
  size_t surplus_good = Surplus(count - num_bad, num_bad);
  LabelledCodes kept{.any_bad = labelled.any_bad};
  for (size_t i = 0; i < count; ++i) {
    size_t& surplus = labelled.labels[i] > 0.0 ? surplus_bad : surplus_good;
    if (surplus > 0) {
      --surplus;
      continue;
    }
    kept.codes.push_back(std::move(labelled.codes[i]));
    kept.labels.push_back(labelled.labels[i]);
  }
  labelled = std::move(kept);
}

void Label(const Codes& codes, bool bad, LabelledCodes& out) {
  out.codes.push_back(codes);
  out.labels.push_back(bad ? 1.0 : -1.0);
  out.any_bad = out.any_bad || bad;
}

// As differences near the limit count most (bilog: Eriksson & Poloczek 2021).
double LabelOf(double excess) {
  const double size = PortableLog(1.0 + std::abs(excess));
  return excess > 0.0 ? size : -size;
}

// By constraint, how far completed trials are beyond it. One that was not reported counts as the
// worst that was, at least as twice its limit.
void LabelByExcess(const Codes& codes, const HistoryTrial& trial, TrainingData& data) {
  data.constraints.resize(std::max(data.constraints.size(), trial.excesses.size()));
  for (size_t i = 0; i < trial.excesses.size(); ++i) {
    LabelledCodes& labelled = data.constraints[i];
    labelled.codes.push_back(codes);
    labelled.labels.push_back(trial.excesses[i]);
    labelled.any_bad = labelled.any_bad || trial.excesses[i] > 0.0;
  }
}

void FinishLabels(LabelledCodes& labelled) {
  double worst = 1.0;
  for (const double excess : labelled.labels) {
    if (std::isfinite(excess)) worst = std::max(worst, excess);
  }
  constexpr double kLeast = std::numeric_limits<double>::lowest();
  for (double& label : labelled.labels) label = LabelOf(std::clamp(label, kLeast, worst));
}

// What `trial` teaches of quality, where it could run.
void AddQuality(const History& history, const HistoryTrial& trial, Codes codes,
                TrainingData& data) {
  const bool running = trial.state == TrialState::kRunning;
  if (!running && !IsFinished(trial)) return;
  const std::optional<double> loss = running ? std::nullopt : LossOf(history, trial, data.meaning);
  if (!loss.has_value()) {
    data.fantasies.push_back(std::move(codes));
    return;
  }
  data.observed.push_back(std::move(codes));
  data.losses.push_back(*loss);
  data.feasible.push_back(data.meaning == LossMeaning::kViolation || trial.violation == 0.0);
}

}  // namespace

TrainingData CollectTrainingData(const History& history, const CodedSpace& space, Bytes capacity,
                                 MemoryPolicy policy) {
  TrainingData data{.meaning = MeaningOf(history, space, capacity, policy)};
  for (const auto& [number, trial] : history.trials()) {
    std::optional<Codes> codes = space.Encode(trial.params);
    if (!codes.has_value()) continue;
    data.tried.push_back(*codes);
    const bool violates = MemoryViolation(trial, capacity, policy) > 0.0;
    const bool failed = trial.state == TrialState::kFailed;
    if (violates) {
      Label(*codes, true, data.memory);
      continue;
    }
    if (EndedByMemory(trial)) continue;
    if (IsFinished(trial)) Label(*codes, false, data.memory);
    if (IsFinished(trial) || failed) Label(*codes, failed, data.failure);
    if (data.meaning == LossMeaning::kObjective) LabelByExcess(*codes, trial, data);
    AddQuality(history, trial, *std::move(codes), data);
  }
  MakeFinite(data);
  KeepNewest(data.memory);
  KeepNewest(data.failure);
  for (LabelledCodes& constraint : data.constraints) {
    FinishLabels(constraint);
    KeepNewest(constraint);
  }
  return data;
}

std::vector<size_t> OrderByLoss(std::span<const double> losses) {
  std::vector<size_t> order(losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return losses[a] < losses[b]; });
  return order;
}

std::vector<Codes> Incumbents(const TrainingData& data) {
  constexpr size_t kMostIncumbents = 6;
  std::vector<size_t> order = OrderByLoss(data.losses);
  std::erase_if(order, [&](size_t i) { return !data.feasible[i]; });
  order.resize(std::min(order.size(), kMostIncumbents));
  std::vector<Codes> incumbents;
  for (const size_t i : order) incumbents.push_back(data.observed[i]);
  return incumbents;
}

std::vector<size_t> SelectObservations(std::span<const double> losses, size_t most) {
  std::vector<size_t> order(losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (losses.size() <= most) return order;
  order = OrderByLoss(losses);
  const auto middle = order.begin() + static_cast<ptrdiff_t>(most / 2);
  std::sort(middle, order.end(), std::greater<size_t>());
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace hpo::sampler
