// Points as tests and golden files write them.
#pragma once

#include <vector>

#include "sampler/gp/surrogate/matern_kernel.h"

namespace hpo::sampler {

using Rows = std::vector<std::vector<double>>;

inline PointTable TableOf(const Rows& rows, size_t num_axes) {
  PointTable points(num_axes);
  for (const auto& row : rows) points.Append(row);
  return points;
}

}  // namespace hpo::sampler
