#include "memory/learned/learned_need.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "memory/need/calibration.h"

namespace hpo::memory {
namespace {

// A use of so much of a limit is no close call.
constexpr double kToSpare = 0.9;
// OOMs that one fit contradicts take part in the next; it settles in two or three rounds.
constexpr int kMaxRounds = 10;
// A row that determines its own prediction tells nothing of the error without it.
constexpr double kHighestRowLeverage = 0.95;
constexpr double kSmallestPrediction = 0.05;
// Margin while there are too few uses for a rank, shrinking to 0 as they come.
constexpr double kColdMargin = 0.25;
// Trials that have to meet an OOM before, as the last resort, what is no smaller is refused.
constexpr int kEnoughOoms = 3;

void AppendRow(const std::vector<double>& row, Columns& columns) {
  for (size_t j = 0; j < row.size(); ++j) columns[j].push_back(row[j]);
}

Columns SelectColumns(const Columns& columns, const std::vector<size_t>& which) {
  Columns selected;
  for (const size_t column : which) selected.push_back(columns[column]);
  return selected;
}

double Conformal(std::vector<double> scores) {
  const double n = static_cast<double>(scores.size());
  const double rank = std::ceil((n + 1.0) * (1.0 - LearnedNeed::kRisk));
  const auto kth = scores.begin() + static_cast<ptrdiff_t>(std::min(rank, n)) - 1;
  std::nth_element(scores.begin(), kth, scores.end());
  const double enough = 1.0 / LearnedNeed::kRisk - 1.0;
  return std::max({0.0, *kth, kColdMargin * (1.0 - n / enough)});
}

}  // namespace

LearnedNeed::LearnedNeed(const SearchSpace& space, const std::vector<std::string>& relevant,
                         std::span<const NeedObservation> observations)
    : terms_(space, relevant) {
  for (const NeedObservation& seen : observations) {
    if (seen.bytes.count <= 0) continue;
    std::vector<Seen>& kind = seen.censored ? ooms_ : seen.unmeasured ? ran_ : uses_;
    kind.push_back({terms_.PointOf(seen.params), seen.bytes});
  }
  directions_.assign(terms_.num_numbers(), Direction::kGrows);
  if (uses_.size() >= kFewestUses) {
    LearnFrom(NeedTerms(terms_));
  } else {
    LeaveOutUnexplained();
  }
}

void LearnedNeed::LearnFrom(const NeedTerms& candidates) {
  FitTerms(candidates, {});
  if (ooms_.empty()) return;
  // By the uses alone, as a fit bends to explain what it is given.
  LeaveOutUnexplained();
  FitTerms(candidates, ooms_);
}

void LearnedNeed::LeaveOutUnexplained() {
  std::erase_if(ooms_, [this](const Seen& oom) { return !IsExplained(oom); });
}

bool LearnedNeed::IsExplained(const Seen& oom) const {
  if (terms_.num_numbers() == 0 && terms_.num_choices() == 0) return false;
  const double spare = kToSpare * static_cast<double>(oom.bytes.count);
  const auto is_larger = [&](const Seen& seen) { return IsNoLarger(oom.point, seen.point); };
  const bool ran = std::any_of(ran_.begin(), ran_.end(), [&](const Seen& seen) {
    return seen.bytes <= oom.bytes && is_larger(seen);
  });
  return !ran && std::none_of(uses_.begin(), uses_.end(), [&](const Seen& use) {
    return static_cast<double>(use.bytes.count) <= spare && is_larger(use);
  });
}

bool LearnedNeed::Explains(const ParamMap& params, Bytes limit) const {
  return IsExplained({terms_.PointOf(params), limit});
}

void LearnedNeed::FitTerms(const NeedTerms& candidates, std::span<const Seen> ooms) {
  Columns columns(candidates.size());
  for (const Seen& use : uses_) {
    AppendRow(RelativeRow(candidates, use.point, static_cast<double>(use.bytes.count)), columns);
  }
  std::vector<std::vector<double>> waiting;
  for (const Seen& oom : ooms) {
    const double need = kNeedBeyondLimit * static_cast<double>(oom.bytes.count);
    waiting.push_back(RelativeRow(candidates, oom.point, need));
  }
  for (int round = 0; round < kMaxRounds; ++round) {
    fit_ = FitNonNegative(columns, std::vector<double>(columns.front().size(), 1.0));
    const auto contradicted = [this](const std::vector<double>& row) {
      double predicted = 0.0;
      for (size_t i = 0; i < fit_.columns.size(); ++i) {
        predicted += fit_.coefficients[i] * row[fit_.columns[i]];
      }
      return predicted < 1.0;
    };
    const auto settled = std::stable_partition(waiting.begin(), waiting.end(), contradicted);
    if (settled == waiting.begin()) break;
    std::for_each(waiting.begin(), settled,
                  [&columns](const std::vector<double>& row) { AppendRow(row, columns); });
    waiting.erase(waiting.begin(), settled);
  }
  LearnMargin(SelectColumns(columns, fit_.columns));
  terms_ = candidates.Select(fit_.columns);
  directions_ = DirectionsOf(terms_);
}

void LearnedNeed::LearnMargin(const Columns& rows_by_term) {
  std::vector<double> scores;
  const size_t num_rows = rows_by_term.empty() ? 0 : rows_by_term.front().size();
  for (size_t i = 0; i < num_rows; ++i) {
    std::vector<double> row;
    for (const std::vector<double>& column : rows_by_term) row.push_back(column[i]);
    const double leverage = std::clamp(fit_.Leverage(row), 0.0, kHighestRowLeverage);
    const double error_without = (1.0 - fit_.Predict(row)) / (1.0 - leverage);
    const double predicted_without = std::max(kSmallestPrediction, 1.0 - error_without);
    scores.push_back(-std::log(predicted_without) / std::sqrt(1.0 + leverage));
  }
  if (!scores.empty()) margin_ = Conformal(std::move(scores));
}

LearnedFit LearnedNeed::Predict(const NeedPoint& point, Bytes usable) const {
  if (fit_.columns.empty()) return {};
  const double predicted = std::max(1.0, fit_.Predict(RelativeRow(terms_, point, 1.0)));
  const double leverage =
      std::clamp(fit_.Leverage(RelativeRow(terms_, point, predicted)), 0.0, kHighestLeverage);
  const double margin = is_last_resort_ ? 0.0 : margin_;
  const double needed = predicted * std::exp(margin * std::sqrt(1.0 + leverage));
  constexpr double kLargest = static_cast<double>(int64_t{1} << 62);
  LearnedFit answer;
  answer.expected = Bytes{static_cast<int64_t>(std::min(kLargest, predicted))};
  answer.needed = Bytes{static_cast<int64_t>(std::min(kLargest, std::ceil(needed)))};
  answer.fits = answer.needed <= usable;
  return answer;
}

bool LearnedNeed::IsNoLarger(const NeedPoint& a, const NeedPoint& b) const {
  return NoLarger(a, b, directions_);
}

LearnedFit LearnedNeed::Decide(const ParamMap& params, Bytes usable) const {
  return DecidePoint(terms_.PointOf(params), usable);
}

LearnedFit LearnedNeed::DecidePoint(const NeedPoint& point, Bytes usable) const {
  const LearnedFit predicted = Predict(point, usable);
  LearnedFit refused = predicted;
  int num_ooms = 0;
  for (const Seen& oom : ooms_) {
    if (oom.bytes < usable || !IsNoLarger(oom.point, point)) continue;
    ++num_ooms;
    refused.fits = false;
    refused.needed = std::max(refused.needed, oom.bytes + Bytes{1});
  }
  if (num_ooms > 0 && !is_last_resort_) return refused;
  const std::optional<LearnedFit> ran = AsWhatRan(point, usable, predicted);
  if (ran) return *ran;
  return num_ooms >= kEnoughOoms ? refused : predicted;
}

std::optional<LearnedFit> LearnedNeed::AsWhatRan(const NeedPoint& point, Bytes usable,
                                                 const LearnedFit& predicted) const {
  const auto holds = [&](const Seen& seen) {
    return seen.bytes <= usable && IsNoLarger(point, seen.point);
  };
  LearnedFit answer = predicted;
  bool met = false;
  for (const Seen& use : uses_) {
    if (!holds(use)) continue;
    const bool known = answer.fits && answer.needed.count > 0;
    answer.needed = known ? std::min(answer.needed, use.bytes) : use.bytes;
    answer.fits = met = true;
  }
  // How much of its limit it used is not known: no reason to demand all of it.
  if (!met && std::any_of(ran_.begin(), ran_.end(), holds)) {
    answer.needed = std::min(answer.needed, usable);
    answer.fits = met = true;
  }
  if (!met) return std::nullopt;
  return answer;
}

bool LearnedNeed::LeavesNothing(Bytes usable) const {
  if (ooms_.empty()) return false;
  const auto is_left = [&](const Seen& seen) {
    return seen.bytes <= usable && DecidePoint(seen.point, usable).fits;
  };
  return std::none_of(uses_.begin(), uses_.end(), is_left) &&
         std::none_of(ran_.begin(), ran_.end(), is_left);
}

LearnedNeed LearnedNeed::AsLastResort() const {
  LearnedNeed last_resort = *this;
  last_resort.is_last_resort_ = true;
  return last_resort;
}

}  // namespace hpo::memory
