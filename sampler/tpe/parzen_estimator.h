// Parzen (kernel density) estimator over several axes: a mixture of products, one component per
// observation and one for the prior. A component is a product of one kernel per axis
// (parzen_axes.h). An observation that lacks an axis (an inactive conditional parameter) has the
// prior's kernel there, so that spaces with conditions stay one joint model.
//
// Observations come and go by number; after Refit() the estimator is that of the observations it
// holds, bit for bit, however it came to them. Densities leave out what is too far away to matter:
// all that is left out of a sum is less than 2^-53 of the prior's share in it. Marginal densities
// of thousands of observations are exact to 1e-7 of a kernel's height (FoldRuns). One owner while
// it changes; between Refit() and the next change safe to share between threads. Source: Bergstra
// et al. 2011, section 4, in the form of Optuna 5.0 (optuna/samplers/_tpe/
// parzen_estimator.py). Golden data: scripts/reference/parzen.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "sampler/tpe/parzen_axes.h"

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

using Point = std::vector<Coordinate>;  // one per axis

// How the axes go together in a density: as one joint mixture (of each group), as the product of
// its marginals, or as the product of both (each marginal to the power of its axis's share), which
// sees what depends on several axes and, with few observations of many axes, what depends on one.
// The marginal density of an axis is over the observations that have it, the joint density of a
// group over those that have one of its axes; axes absent from a point are integrated out.
enum class Dependence { kJoint, kIndependent, kBoth };

// How observations lie in memory. Joint densities of many leave out most of them where neighbours
// lie together; components are drawn by age.
enum class RowOrder { kByAge, kByPlace };

class ParzenEstimator {
 public:
  // Without observations: the prior alone. `prior_weight`: of the prior's component, against 1 of a
  // recent observation; > 0 and finite.
  explicit ParzenEstimator(std::vector<ParzenAxis> axes, double prior_weight = 1.0,
                           RowOrder order = RowOrder::kByAge);

  // The estimator of `points`, oldest first.
  //   InvalidArgument  a point of another number of axes, a position outside [0, 1] or not finite,
  //                    an index of no choice, a prior weight that is not positive or not finite
  static absl::StatusOr<ParzenEstimator> Create(std::vector<ParzenAxis> axes,
                                                std::span<const Point> points,
                                                double prior_weight = 1.0,
                                                RowOrder order = RowOrder::kByAge);

  // A new observation; a larger number is more recent. Its number is not held; its coordinates are
  // as Create() takes them.
  void Insert(int64_t number, const Point& point);
  void Erase(int64_t number);  // one that is held
  // The newest 25 observations count one each, older ones less (RecencyRamp).
  void Refit();
  // Each counts what `weights` says, by number; > 0 and at most 1.
  void Refit(std::span<const double> weights);
  // What DrawComponent() needs, after Refit(). O(observations * axes).
  void PrepareDraws();

  size_t num_observations() const { return numbers_.size(); }
  size_t num_components() const { return numbers_.size() + 1; }

  // Natural log of the density at each point (of the mass on grid and categorical axes).
  std::vector<double> LogDensities(std::span<const Point> points, Dependence dependence) const;

  // Index of a component that has the axis, which the prior's does, drawn by weight.
  size_t DrawComponent(size_t axis, Rng& rng) const;

  bool HasAxis(size_t component, size_t axis) const;  // the prior's has all

  // A position from the component's kernel on a numeric axis, truncated further to `within`.
  double DrawPosition(size_t component, size_t axis, Interval within, Rng& rng) const;

  // One of `allowed` (indices of choices, not empty) from the component's kernel.
  size_t DrawChoice(size_t component, size_t axis, std::span<const size_t> allowed, Rng& rng) const;

 private:
  using Axis = std::variant<ContinuousAxis, GridAxis, ChoiceAxis>;
  struct Evaluation;

  // Axes that are one mixture.
  struct Group {
    std::vector<size_t> axes;     // the continuous ones first
    size_t num_without = 0;       // observations that have none of them
    double weight_without = 0.0;  // of these
  };

  // An observation. Rows are in the order of places among the settled, then of numbers.
  struct Row {
    uint64_t place = 0;
    int64_t number = 0;
  };

  uint64_t PlaceOf(const Point& point) const;
  auto KeyOf(const Row& row) const;
  size_t FindRow(const Row& row) const;
  void Settle();
  void RefitAxes();
  RowWeights weights() const { return {ramp_, ranks_, given_.size() > 0 ? &given_ : nullptr}; }
  bool RowHas(size_t row, size_t axis) const;
  bool HasAny(const Group& group, size_t row) const;
  void FillTables(Evaluation& evaluation) const;
  void AddMarginals(Evaluation& evaluation, std::span<const double> shares) const;
  void AddJoint(const Group& group, Evaluation& evaluation) const;
  double LogPriorFloor(size_t axis, const Coordinate& coordinate) const;
  double LogPeak(size_t axis) const;
  double LogMargin() const;

  std::vector<Axis> axes_;
  std::vector<double> marginal_shares_;  // by axis
  std::vector<Group> groups_;
  std::vector<size_t> continuous_;  // axes
  double prior_weight_;
  RowOrder order_;
  std::vector<int64_t> numbers_;  // of the observations, ascending
  std::vector<Row> rows_;
  int64_t settled_ = 0;         // smaller numbers than this are settled
  PaddedColumn<double> ranks_;  // by row: how many numbers are smaller
  PaddedColumn<double> given_;  // by row: weights; empty: by rank
  RecencyRamp ramp_;
  double total_weight_ = 0.0;  // of the observations
  // By axis: sums of the weights of the components that have it.
  std::vector<std::vector<double>> cumulative_;
};

}  // namespace hpo::sampler
