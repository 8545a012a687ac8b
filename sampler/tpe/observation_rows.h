// The rows that observations have in the columns of a density. An observation with a larger number
// is more recent; its rank is the number of older observations. Settled observations come first,
// sorted by place; all others follow, sorted by number. The order depends on numbers and places
// alone, not on the order of insertions. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampler/numeric/normal_kernel.h"
#include "sampler/tpe/kernel_sums.h"

namespace hpo::sampler {

// The positions in [0, 1], their bits in turns, so that equal first bits are near each other in all
// of them (Morton 1966). What is absent comes first.
uint64_t PlaceOf(std::span<const Coordinate> coordinates);

class ObservationRows {
 public:
  struct Found {
    size_t row = 0;
    size_t rank = 0;
  };

  explicit ObservationRows(bool settles) : settles_(settles) {}

  size_t size() const { return numbers_.size(); }
  const PaddedColumn<double>& ranks() const { return ranks_; }  // by row

  // Adds an observation, whose number is new. Returns its row.
  Found Insert(int64_t number, uint64_t place);
  // Removes an observation, whose number is there. Returns the row that it had.
  Found Erase(int64_t number);
  // Settles those that are old enough. The row that was order[i] becomes i; empty: all stay.
  std::vector<uint32_t> Settle();

 private:
  struct Row {
    uint64_t place = 0;
    int64_t number = 0;
  };

  auto KeyOf(const Row& row) const;
  size_t FindRow(const Row& row) const;
  size_t RankOf(int64_t number) const;

  bool settles_;
  std::vector<int64_t> numbers_;  // ascending
  std::vector<Row> rows_;
  int64_t settled_ = 0;  // smaller numbers than this are settled
  PaddedColumn<double> ranks_;
};

}  // namespace hpo::sampler
