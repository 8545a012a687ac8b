// A regression tree as a partition of the unit cube into boxes with one value each.
// Source: Breiman et al. 1984, "Classification and regression trees".
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/random.h"

namespace hpo {

// Rows of the training data: row i has inputs[d][i] for dimension d and outputs[i].
struct RegressionData {
  // A numeric dimension's inputs lie in [0, 1]; a categorical one's are numbers of its choices.
  std::vector<std::vector<double>> inputs;
  std::vector<size_t> num_choices;  // by dimension; 0: numeric
  std::vector<double> outputs;
};

// What a box spans of one dimension: an interval, or the choices whose flag is set.
struct Extent {
  double low = 0.0;
  double high = 1.0;
  std::vector<bool> choices;

  // Share of the dimension, in (0, 1].
  double Size() const;
};

struct Box {
  std::vector<Extent> extents;  // by dimension
  double value = 0.0;           // mean output of the training rows inside
};

// Grows trees on rows of the same data, which it sorts once. Immutable; safe to share between
// threads.
class PartitionGrower {
 public:
  // At most 2^32 - 1 rows.
  explicit PartitionGrower(RegressionData data);

  // Grows a tree on `rows` (with repeats; not empty) until each box holds one input or one output:
  // every split is the one that reduces the squared error most, of all dimensions; equally good
  // ones by draw. Splits of numbers lie midway between inputs; choices are split in the order of
  // their mean outputs, and those that no row of a box has go to the larger side. The boxes cover
  // the cube and do not overlap. O(rows * dimensions * depth).
  std::vector<Box> Grow(const std::vector<size_t>& rows, Rng& rng) const;

  const RegressionData& data() const { return data_; }

 private:
  const RegressionData data_;
  std::vector<std::vector<uint32_t>> orders_;  // by dimension, all rows by their inputs
};

}  // namespace hpo
