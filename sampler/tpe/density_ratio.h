// A pair of Parzen densities, of what is sought (below) and what is to be avoided (above), and how
// strongly they speak for a point.
// One owner while it changes; between Refit() and the next change safe to share between threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampler/tpe/parzen_estimator.h"

namespace hpo::sampler {

class DensityRatio {
 public:
  DensityRatio(const std::vector<ParzenAxis>& axes, Dependence dependence)
      : below_(axes, /*prior_weight=*/1.0, RowOrder::kByAge),
        above_(axes, /*prior_weight=*/1.0, RowOrder::kByPlace),
        dependence_(dependence) {}

  // Trials come, go and change sides; Refit() then brings the densities up to date.
  void AddBelow(int64_t number, const Point& point) { below_.Insert(number, point); }
  void AddAbove(int64_t number, const Point& point) { above_.Insert(number, point); }
  void RemoveBelow(int64_t number) { below_.Erase(number); }
  void RemoveAbove(int64_t number) { above_.Erase(number); }
  void Refit();
  // With what those below count (ParzenEstimator::Refit).
  void Refit(std::span<const double> weights_below);

  // Natural log of r = 1 / (gamma + (1 - gamma) * above / below) at each point, gamma the share of
  // the trials that are below; larger is better, 0 when nothing is to be avoided. -infinity where
  // only `above` has mass; 0 where neither has.
  std::vector<double> LogRelative(std::span<const Point> points) const;

  // The density of what is sought, to draw from.
  const ParzenEstimator& below() const { return below_; }

 private:
  ParzenEstimator below_;
  ParzenEstimator above_;
  Dependence dependence_;
};

}  // namespace hpo::sampler
