// Tested by tests/sampler/tpe/parzen_estimator_test.cc.
#include "sampler/tpe/observation_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace hpo::sampler {

uint64_t PlaceOf(std::span<const Coordinate> coordinates) {
  constexpr size_t kMostBits = 8;
  const size_t count = std::min<size_t>(coordinates.size(), 64);
  if (count == 0) return 0;
  const size_t num_bits = std::min(kMostBits, 64 / count);
  const double steps = static_cast<double>((1 << num_bits) - 1);
  uint64_t place = 0;
  for (size_t bit = num_bits; bit-- > 0;) {
    for (const Coordinate& here : coordinates.first(count)) {
      const double step = here.present ? 1.0 + std::min(here.at * steps, steps - 1.0) : 0.0;
      place = place << 1 | (static_cast<uint64_t>(step) >> bit & 1);
    }
  }
  return place;
}

size_t ObservationRows::RankOf(int64_t number) const {
  const auto older = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  return static_cast<size_t>(older - numbers_.begin());
}

auto ObservationRows::KeyOf(const Row& row) const {
  constexpr uint64_t kAfterAll = std::numeric_limits<uint64_t>::max();
  return std::pair(row.number < settled_ ? row.place : kAfterAll, row.number);
}

// Where a row is, or belongs.
size_t ObservationRows::FindRow(const Row& row) const {
  const auto found =
      std::lower_bound(rows_.begin(), rows_.end(), row,
                       [this](const Row& a, const Row& b) { return KeyOf(a) < KeyOf(b); });
  return static_cast<size_t>(found - rows_.begin());
}

ObservationRows::Found ObservationRows::Insert(int64_t number, uint64_t place) {
  const Row added{settles_ ? place : 0, number};
  const Found found{FindRow(added), RankOf(number)};
  if (found.rank < size()) ShiftFrom(static_cast<double>(found.rank), 1.0, ranks_);
  numbers_.insert(numbers_.begin() + static_cast<std::ptrdiff_t>(found.rank), number);
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(found.row), added);
  ranks_.Insert(found.row, static_cast<double>(found.rank));
  return found;
}

ObservationRows::Found ObservationRows::Erase(int64_t number) {
  const auto is_it = [number](const Row& row) { return row.number == number; };
  const size_t row =
      number >= settled_
          ? FindRow({.number = number})
          : static_cast<size_t>(std::find_if(rows_.begin(), rows_.end(), is_it) - rows_.begin());
  const Found found{row, RankOf(number)};
  numbers_.erase(numbers_.begin() + static_cast<std::ptrdiff_t>(found.rank));
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  ranks_.Erase(row);
  if (found.rank < size()) ShiftFrom(static_cast<double>(found.rank + 1), -1.0, ranks_);
  return found;
}

// The newest are not settled one by one, as that moves most of memory: some hundredths at a time.
std::vector<uint32_t> ObservationRows::Settle() {
  constexpr uint64_t kLeastStep = 64;
  if (!settles_ || numbers_.empty() || numbers_.back() < 0) return {};
  const uint64_t newest = static_cast<uint64_t>(numbers_.back());
  const uint64_t step = std::max(kLeastStep, std::bit_floor(newest / 32));
  const int64_t settled = static_cast<int64_t>(newest / step * step);
  if (settled == settled_) return {};
  settled_ = settled;
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return KeyOf(rows_[a]) < KeyOf(rows_[b]); });
  rows_ = Permuted(rows_, order);
  ranks_.Permute(order);
  return order;
}

}  // namespace hpo::sampler
