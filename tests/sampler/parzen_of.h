// The Parzen estimator of points, oldest first.
#pragma once

#include <span>
#include <vector>

#include "sampler/tpe/parzen_estimator.h"

namespace hpo::sampler {

inline ParzenEstimator ParzenOf(const std::vector<ParzenAxis>& axes, std::span<const Point> points,
                                double prior_weight = 1.0) {
  ParzenEstimator estimator(axes, prior_weight);
  for (size_t i = 0; i < points.size(); ++i) estimator.Insert(static_cast<int64_t>(i), points[i]);
  estimator.Refit();
  estimator.PrepareDraws();
  return estimator;
}

}  // namespace hpo::sampler
