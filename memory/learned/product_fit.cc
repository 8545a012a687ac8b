#include "memory/learned/product_fit.h"

#include <algorithm>
#include <cstddef>

namespace hpo::memory {

std::vector<double> RelativeRow(const NeedTerms& terms, const NeedPoint& point, double scale) {
  std::vector<double> row;
  row.reserve(terms.size());
  for (size_t term = 0; term < terms.size(); ++term) {
    row.push_back(terms.Value(term, point) / scale);
  }
  return row;
}

std::vector<Direction> DirectionsOf(const NeedTerms& terms) {
  std::vector<Direction> directions(terms.num_numbers(), Direction::kGrows);
  for (size_t number = 0; number < directions.size(); ++number) {
    bool grows = false;
    bool shrinks = false;
    for (size_t term = 0; term < terms.size(); ++term) {
      grows = grows || terms.GrowsWith(term, number);
      shrinks = shrinks || terms.ShrinksWith(term, number);
    }
    if (shrinks) directions[number] = grows ? Direction::kBoth : Direction::kShrinks;
  }
  return directions;
}

ProductFit::ProductFit(const NeedTerms& candidates, std::span<const KnownNeed> known) {
  Columns columns(candidates.size());
  for (const KnownNeed& one : known) {
    const std::vector<double> row = RelativeRow(candidates, one.point, one.bytes);
    for (size_t j = 0; j < row.size(); ++j) columns[j].push_back(row[j]);
  }
  fit_ = FitNonNegative(columns, std::vector<double>(known.size(), 1.0));
  terms_ = candidates.Select(fit_.columns);
}

double ProductFit::Predict(const NeedPoint& point) const {
  return std::max(1.0, fit_.Predict(RelativeRow(terms_, point, 1.0)));
}

double ProductFit::Leverage(const NeedPoint& point, double bytes) const {
  return std::clamp(fit_.Leverage(RelativeRow(terms_, point, bytes)), 0.0, kHighestLeverage);
}

bool NoLarger(const NeedPoint& a, const NeedPoint& b, const std::vector<Direction>& directions) {
  if (a.choices != b.choices) return false;
  for (size_t i = 0; i < directions.size(); ++i) {
    if (a.numbers[i] == b.numbers[i]) continue;
    if (!a.numbers[i] || !b.numbers[i] || directions[i] == Direction::kBoth) return false;
    const bool below = *a.numbers[i] < *b.numbers[i];
    if (below != (directions[i] == Direction::kGrows)) return false;
  }
  return true;
}

}  // namespace hpo::memory
