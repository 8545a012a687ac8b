// Parzen (kernel density) estimator over several axes: a mixture of products, one component per
// observation and one for the prior. A component is a product of one kernel per axis
// (parzen_axes.h). An observation that lacks an axis (an inactive conditional parameter) has the
// prior's kernel there, so that spaces with conditions stay one joint model.
//
// Observations come and go by number; after Refit() the estimator is that of the observations it
// holds, bit for bit, however it came to them. One owner while it changes; between Refit() and the
// next change safe to share between threads. Source: Bergstra et al. 2011, section 4, in the form
// of Optuna 5.0 (optuna/samplers/_tpe/parzen_estimator.py). Golden data:
// scripts/reference/parzen.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "sampler/tpe/observation_rows.h"
#include "sampler/tpe/parzen_mixture.h"

namespace hpo::sampler {

struct ParzenAxis {
  enum class Kind { kContinuous, kGrid, kCategorical };
  Kind kind = Kind::kContinuous;
  size_t num_choices = 0;  // of a categorical axis
  // Exponent of its marginal in Dependence::kBoth, >= 0.
  double marginal_share = 1.0;
  // Joint densities are a product over the groups, counted from 0, of one mixture each.
  size_t group = 0;
  bool operator==(const ParzenAxis&) const = default;
};

// How observations lie in memory. Joint densities of many leave out most of them where neighbours
// lie together; components are drawn by age.
enum class RowOrder { kByAge, kByPlace };

class ParzenEstimator {
 public:
  // Without observations: the prior alone. `prior_weight`: of the prior's component, against 1 of a
  // recent observation; > 0 and finite.
  explicit ParzenEstimator(std::vector<ParzenAxis> axes, double prior_weight = 1.0,
                           RowOrder order = RowOrder::kByAge);

  // A new observation; a larger number is more recent. Its number is not held; of each axis it has
  // a position in [0, 1] or the index of a choice, or nothing.
  void Insert(int64_t number, const Point& point);
  void Erase(int64_t number);  // one that is held
  // The newest 25 observations count one each, older ones less (RecencyRamp).
  void Refit();
  // Each counts what `weights` says, by number; > 0 and at most 1.
  void Refit(std::span<const double> weights);
  // What DrawComponent() needs, after Refit(). O(observations * axes).
  void PrepareDraws();

  size_t num_observations() const { return rows_.size(); }

  // Natural log of the density at each point (of the mass on grid and categorical axes).
  std::vector<double> LogDensities(std::span<const Point> points, Dependence dependence) const {
    return hpo::sampler::LogDensities(mixture_, weights().taken(), points, dependence);
  }

  // Index of a component that has the axis, which the prior's does, drawn by weight.
  size_t DrawComponent(size_t axis, Rng& rng) const;

  bool HasAxis(size_t component, size_t axis) const;  // the prior's has all

  // A position from the component's kernel on a numeric axis, truncated further to `within`.
  double DrawPosition(size_t component, size_t axis, Interval within, Rng& rng) const;

  // One of `allowed` (indices of choices, not empty) from the component's kernel.
  size_t DrawChoice(size_t component, size_t axis, std::span<const size_t> allowed, Rng& rng) const;

 private:
  uint64_t PlaceOf(const Point& point) const;
  void Settle();
  void RefitAxes();
  RowWeights weights() const {
    return {mixture_.ramp, rows_.ranks(), given_.size() > 0 ? &given_ : nullptr};
  }

  ObservationRows rows_;
  ParzenMixture mixture_;
  std::vector<size_t> continuous_;  // axes
  PaddedColumn<double> given_;      // by row: weights; empty: by rank
  // By axis: sums of the weights of the components that have it.
  std::vector<std::vector<double>> cumulative_;
};

}  // namespace hpo::sampler
