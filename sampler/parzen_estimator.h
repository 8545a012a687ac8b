// Parzen (kernel density) estimator over several axes: a mixture of products, one component per
// observation and one for the prior. A component is a product of one kernel per axis: a truncated
// normal on [0, 1], its mass over a cell for values on a grid, or a smoothed choice.
// An observation that lacks an axis (an inactive conditional parameter) has the prior's kernel
// there, so that spaces with conditions stay one joint model.
// Immutable after Create(); safe to share between threads.
// Source: Bergstra et al. 2011, section 4, in the form of Optuna 5.0 (shared/research/optuna.md
// 1.5-1.8). Golden data: scripts/reference/parzen.py.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/random.h"

namespace hpo {

struct Interval {
  double low = 0.0;
  double high = 1.0;
  bool operator==(const Interval&) const = default;
};

struct ParzenAxis {
  enum class Kind { kContinuous, kGrid, kCategorical };
  Kind kind = Kind::kContinuous;
  size_t num_choices = 0;  // of a categorical axis
};

// A value on one axis.
struct Coordinate {
  bool present = false;
  // Position in [0, 1]; on a categorical axis the index of the choice.
  double at = 0.0;
  // On a grid axis: the interval around `at` that the value stands for.
  Interval cell;
};

using Point = std::vector<Coordinate>;  // one per axis

struct ParzenOptions {
  double prior_weight = 1.0;  // of the prior's component, against 1 of a recent observation; >= 0
  bool magic_clip = true;     // bandwidths at least range / min(100, n + 2)
  bool use_ends = false;      // the ends of the range count as neighbours of the outermost points
};

// Weights of n observations, oldest first, before normalisation: 1, and from 25 on the oldest
// n - 25 on a ramp from 1/n up to 1.
std::vector<double> RecencyWeights(size_t n);

// Bandwidth of each of `positions`, in their order: the larger gap to its neighbours in sorted
// order (ties by order), clipped to the range.
std::vector<double> NeighbourBandwidths(std::span<const double> positions, Interval range,
                                        const ParzenOptions& options);

class ParzenEstimator {
 public:
  // `points` oldest first; none: the prior alone.
  //   InvalidArgument  a point of another number of axes, a position outside [0, 1] or not finite,
  //                    an index of no choice, a negative or not finite prior weight
  static absl::StatusOr<ParzenEstimator> Create(std::vector<ParzenAxis> axes,
                                                std::span<const Point> points,
                                                const ParzenOptions& options);

  size_t num_components() const { return log_weights_.size(); }

  // Natural log of the density (of the mass on grid and categorical axes). Axes absent from `point`
  // are integrated out. O(components * axes).
  double LogDensity(const Point& point) const;

  // Sum over the axes of the natural log of the density on that axis alone: the density as it were
  // if the axes were independent. An axis that tells nothing adds the same everywhere, so a few
  // observations in many dimensions say more than in LogDensity. Only observations that have the
  // axis take part in its density. O(components * axes).
  double LogProductOfMarginals(const Point& point) const;

  // Index of a component that has the axis, or of the prior's, drawn by weight.
  size_t DrawComponent(size_t axis, Rng& rng) const;

  // A position from the component's kernel on a numeric axis, truncated further to `within`.
  double DrawPosition(size_t component, size_t axis, Interval within, Rng& rng) const;

  // One of `allowed` (indices of choices, not empty) from the component's kernel.
  size_t DrawChoice(size_t component, size_t axis, std::span<const size_t> allowed, Rng& rng) const;

 private:
  // The kernels of all components on one axis.
  struct NumericKernels {
    std::vector<double> centre;
    std::vector<double> bandwidth;
    // What the kernel is divided by: its mass inside [0, 1] and, for a density, its scale.
    std::vector<double> log_norm;
  };
  struct CategoricalKernels {
    static constexpr size_t kPrior = static_cast<size_t>(-1);
    std::vector<size_t> choice;  // kPrior: every choice alike
    double log_same = 0.0;
    double log_other = 0.0;
    double log_prior = 0.0;
  };

  // The weights of the components that have an axis, and of the prior's; of the others zero.
  struct Marginal {
    std::vector<double> log_weights;  // normalised
    std::vector<double> cumulative;   // for drawing
  };

  void FitMarginal(size_t axis, std::span<const Point> points, std::vector<double> weights);
  void FitNumeric(size_t axis, std::span<const Point> points, const ParzenOptions& options);
  void FitCategorical(size_t axis, std::span<const Point> points, const ParzenOptions& options);
  void AddLogKernels(size_t axis, const Coordinate& coordinate, std::vector<double>& sums) const;

  std::vector<ParzenAxis> axes_;
  std::vector<double> log_weights_;              // normalised; the prior's last
  std::vector<Marginal> marginals_;              // by axis
  std::vector<NumericKernels> numeric_;          // by axis; empty on categorical axes
  std::vector<CategoricalKernels> categorical_;  // by axis; empty on numeric axes
};

}  // namespace hpo
