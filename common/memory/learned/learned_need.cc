#include "common/memory/learned/learned_need.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/memory/need/calibration.h"

namespace hpo {
namespace {

// A use of so much of a limit is no close call.
constexpr double kToSpare = 0.9;
// OOMs that one fit contradicts take part in the next; it settles in two or three rounds.
constexpr int kMaxRounds = 10;
// A row that determines its own prediction tells nothing of the error without it.
constexpr double kHighestRowLeverage = 0.95;
constexpr double kHighestLeverage = 100.0;
constexpr double kSmallestPrediction = 0.05;
// Margin while there are too few uses for a rank, shrinking to 0 as they come.
constexpr double kColdMargin = 0.25;

// One value per term of the fit, relative to what `scale` bytes would be.
std::vector<double> RowOf(const NeedTerms& terms, const NeedPoint& point, double scale) {
  std::vector<double> row;
  row.reserve(terms.size());
  for (size_t term = 0; term < terms.size(); ++term) {
    row.push_back(terms.Value(term, point) / scale);
  }
  return row;
}

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
    (seen.censored ? ooms_ : uses_).push_back({terms_.PointOf(seen.params), seen.bytes});
  }
  directions_.assign(terms_.num_numbers(), Direction::kGrows);
  if (uses_.size() >= kFewestUses) LearnFrom(NeedTerms(terms_));
}

void LearnedNeed::LearnFrom(const NeedTerms& candidates) {
  FitTerms(candidates, {});
  if (ooms_.empty()) return;
  // By the uses alone, as a fit bends to explain what it is given.
  std::erase_if(ooms_, [this](const Seen& oom) { return IsContradicted(oom); });
  FitTerms(candidates, ooms_);
}

bool LearnedNeed::IsContradicted(const Seen& oom) const {
  const double spare = kToSpare * static_cast<double>(oom.bytes.count);
  return std::any_of(uses_.begin(), uses_.end(), [&](const Seen& use) {
    return static_cast<double>(use.bytes.count) <= spare && NoLarger(oom.point, use.point);
  });
}

void LearnedNeed::FitTerms(const NeedTerms& candidates, std::span<const Seen> ooms) {
  Columns columns(candidates.size());
  for (const Seen& use : uses_) {
    AppendRow(RowOf(candidates, use.point, static_cast<double>(use.bytes.count)), columns);
  }
  std::vector<std::vector<double>> waiting;
  for (const Seen& oom : ooms) {
    const double need = kNeedBeyondLimit * static_cast<double>(oom.bytes.count);
    waiting.push_back(RowOf(candidates, oom.point, need));
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
  LearnDirections();
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

void LearnedNeed::LearnDirections() {
  directions_.assign(terms_.num_numbers(), Direction::kGrows);
  for (size_t number = 0; number < directions_.size(); ++number) {
    bool grows = false;
    bool shrinks = false;
    for (size_t term = 0; term < terms_.size(); ++term) {
      grows = grows || terms_.GrowsWith(term, number);
      shrinks = shrinks || terms_.ShrinksWith(term, number);
    }
    if (shrinks) directions_[number] = grows ? Direction::kBoth : Direction::kShrinks;
  }
}

LearnedFit LearnedNeed::Predict(const NeedPoint& point, Bytes usable) const {
  if (fit_.columns.empty()) return {};
  const double predicted = std::max(1.0, fit_.Predict(RowOf(terms_, point, 1.0)));
  const double leverage =
      std::clamp(fit_.Leverage(RowOf(terms_, point, predicted)), 0.0, kHighestLeverage);
  const double needed = predicted * std::exp(margin_ * std::sqrt(1.0 + leverage));
  constexpr double kLargest = static_cast<double>(int64_t{1} << 62);
  LearnedFit answer;
  answer.expected = Bytes{static_cast<int64_t>(std::min(kLargest, predicted))};
  answer.needed = Bytes{static_cast<int64_t>(std::min(kLargest, std::ceil(needed)))};
  answer.fits = answer.needed <= usable;
  return answer;
}

bool LearnedNeed::NoLarger(const NeedPoint& a, const NeedPoint& b) const {
  if (a.choices != b.choices) return false;
  for (size_t i = 0; i < directions_.size(); ++i) {
    if (a.numbers[i] == b.numbers[i]) continue;
    if (!a.numbers[i] || !b.numbers[i] || directions_[i] == Direction::kBoth) return false;
    const bool below = *a.numbers[i] < *b.numbers[i];
    if (below != (directions_[i] == Direction::kGrows)) return false;
  }
  return true;
}

LearnedFit LearnedNeed::Decide(const ParamMap& params, Bytes usable) const {
  const NeedPoint point = terms_.PointOf(params);
  LearnedFit answer = Predict(point, usable);
  bool met = false;
  for (const Seen& oom : ooms_) {
    if (oom.bytes < usable || !NoLarger(oom.point, point)) continue;
    met = true;
    answer.fits = false;
    answer.needed = std::max(answer.needed, oom.bytes + Bytes{1});
  }
  if (met) return answer;
  for (const Seen& use : uses_) {
    if (use.bytes > usable || !NoLarger(point, use.point)) continue;
    const bool known = answer.fits && answer.needed.count > 0;
    answer.needed = known ? std::min(answer.needed, use.bytes) : use.bytes;
    answer.fits = true;
  }
  return answer;
}

}  // namespace hpo
