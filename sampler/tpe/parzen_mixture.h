// A mixture of products of kernels, one component per observation and one for the prior, and its
// density: what a ParzenEstimator keeps up to date. Densities leave out what is too far away to
// matter: all that is left out of a sum is less than 2^-53 of the prior's share in it. Marginal
// densities of thousands of observations are exact to 1e-7 of a kernel's height (FoldRuns).
// A value; safe to share between threads while it does not change. Source: as parzen_estimator.h.
#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "sampler/tpe/parzen_axes.h"

namespace hpo::sampler {

using Point = std::vector<Coordinate>;  // one per axis

// How the axes go together in a density: as one joint mixture (of each group), as the product of
// its marginals, or as the product of both (each marginal to the power of its axis's share), which
// sees what depends on several axes and, with few observations of many axes, what depends on one.
// The marginal density of an axis is over the observations that have it, the joint density of a
// group over those that have one of its axes; axes absent from a point are integrated out.
enum class Dependence { kJoint, kIndependent, kBoth };

struct ParzenMixture {
  using Axis = std::variant<ContinuousAxis, GridAxis, ChoiceAxis>;

  // Axes that are one mixture.
  struct Group {
    std::vector<size_t> axes;     // the continuous ones first
    size_t num_without = 0;       // observations that have none of them
    double weight_without = 0.0;  // of these
  };

  std::vector<Axis> axes;
  std::vector<double> marginal_shares;  // by axis
  std::vector<Group> groups;
  double prior_weight = 1.0;
  RecencyRamp ramp;
  double total_weight = 0.0;  // of the observations

  bool HasAxis(size_t row, size_t axis) const;
  bool HasAny(const Group& group, size_t row) const;
};

// Natural log of the density at each point (of the mass on grid and categorical axes). `weights`:
// by row, what the ramp takes.
std::vector<double> LogDensities(const ParzenMixture& mixture, const PaddedColumn<double>& weights,
                                 std::span<const Point> points, Dependence dependence);

}  // namespace hpo::sampler
