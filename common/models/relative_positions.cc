#include "common/models/relative_positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace hpo {

// Distances up to half of the buckets have a row each, farther ones share rows by their logarithm.
int64_t RelativeRow(const RelativeAttention& relative, int64_t max_positions, int64_t distance) {
  const int64_t magnitude = std::abs(distance);
  const int64_t half = relative.span / 2;
  int64_t bucket = magnitude;
  if (relative.bucketed && magnitude > half) {
    const int64_t farthest = relative.farthest > 0 ? relative.farthest : max_positions;
    const auto middle = static_cast<float>(half);
    const float share = std::log(static_cast<float>(magnitude) / middle) /
                        std::log(static_cast<float>(farthest - 1) / middle);
    bucket = static_cast<int64_t>(std::ceil(share * static_cast<float>(half - 1))) + half;
  }
  const int64_t row = relative.span + (distance < 0 ? -bucket : bucket);
  return std::clamp<int64_t>(row, 0, 2 * relative.span - 1);
}

}  // namespace hpo
