// Tested by tests/sampler/tpe/parzen_estimator_test.cc.
#include "sampler/tpe/parzen_mixture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// The densities of points, and what these have in common with an axis, worked out once.
class MixtureEvaluation {
 public:
  MixtureEvaluation(const ParzenMixture& mixture, const PaddedColumn<double>& weights,
                    std::span<const Point> points)
      : mixture_(mixture), weights_(weights), points_(points), logs_(points.size(), 0.0) {
    FillTables();
  }

  void AddMarginals(std::span<const double> shares);
  void AddJoint(const ParzenMixture::Group& group);
  std::vector<double> TakeLogs() { return std::move(logs_); }

 private:
  void FillTables();
  double LogPriorFloor(size_t axis, const Coordinate& coordinate) const;
  double LogPeak(size_t axis) const;
  double LogMargin() const;
  MarginalWeights marginal_weights() const { return {mixture_.ramp, mixture_.prior_weight}; }
  const KernelTable& TableAt(size_t axis, size_t point) const {
    return tables_[axis][table_of_[axis][point]];
  }

  const ParzenMixture& mixture_;
  const PaddedColumn<double>& weights_;
  std::span<const Point> points_;
  // By axis: one table per coordinate, of tabled axes, and which of them is each point's.
  std::vector<std::vector<KernelTable>> tables_;
  std::vector<std::vector<size_t>> table_of_;
  std::vector<double> logs_;  // by point: the result
};

double MixtureEvaluation::LogPriorFloor(size_t axis, const Coordinate& coordinate) const {
  if (const auto* choices = std::get_if<ChoiceAxis>(&mixture_.axes[axis]))
    return choices->LogPrior();
  if (std::holds_alternative<GridAxis>(mixture_.axes[axis])) {
    return GridAxis::LogPriorFloor(coordinate.cell);
  }
  return ContinuousAxis::LogPrior(coordinate.at);
}

double MixtureEvaluation::LogPeak(size_t axis) const {
  return std::visit([](const auto& held) { return held.LogPeak(); }, mixture_.axes[axis]);
}

// By how much the logarithm of a component must be below the prior's for all of them to be left
// out.
double MixtureEvaluation::LogMargin() const {
  return kLogPrecision + Log(static_cast<double>(weights_.size() + 1)) - Log(mixture_.prior_weight);
}

void MixtureEvaluation::FillTables() {
  double peaks = 0.0;
  for (size_t axis = 0; axis < mixture_.axes.size(); ++axis) peaks += LogPeak(axis);
  double lowest = 0.0;
  for (const Point& point : points_) {
    double log_prior = 0.0;
    for (size_t axis = 0; axis < mixture_.axes.size(); ++axis) {
      if (point[axis].present) log_prior += LogPriorFloor(axis, point[axis]);
    }
    lowest = std::min(lowest, log_prior);
  }
  // A kernel has no more than 1.47 exp(-z^2 / 2) of its mass z bandwidths from its centre.
  const double reach = std::sqrt(2.0 * (0.4 + LogMargin() + peaks - lowest));
  tables_.resize(mixture_.axes.size());
  table_of_.resize(mixture_.axes.size());
  for (size_t axis = 0; axis < mixture_.axes.size(); ++axis) {
    if (std::holds_alternative<ContinuousAxis>(mixture_.axes[axis])) continue;
    std::vector<KernelTable>& tables = tables_[axis];
    std::vector<size_t>& table_of = table_of_[axis];
    for (const Point& point : points_) {
      const Coordinate& here = point[axis];
      const auto same = std::find_if(tables.begin(), tables.end(),
                                     [&](const KernelTable& table) { return table.at == here.at; });
      table_of.push_back(static_cast<size_t>(same - tables.begin()));
      if (!here.present || same != tables.end()) continue;
      if (const auto* grid = std::get_if<GridAxis>(&mixture_.axes[axis])) {
        tables.push_back(grid->TableAt(here, reach, marginal_weights()));
      } else {
        tables.push_back(
            std::get<ChoiceAxis>(mixture_.axes[axis]).TableAt(here.at, marginal_weights()));
      }
    }
  }
}

void MixtureEvaluation::AddMarginals(std::span<const double> shares) {
  for (size_t axis = 0; axis < mixture_.axes.size(); ++axis) {
    std::vector<size_t> with_axis;
    std::vector<double> positions;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (!points_[i][axis].present) continue;
      with_axis.push_back(i);
      positions.push_back(points_[i][axis].at);
    }
    const auto* continuous = std::get_if<ContinuousAxis>(&mixture_.axes[axis]);
    std::vector<double> marginals;
    if (continuous != nullptr) {
      marginals = continuous->LogMarginals(positions, marginal_weights());
    } else {
      for (const size_t i : with_axis) {
        marginals.push_back(TableAt(axis, i).log_marginal);
      }
    }
    for (size_t i = 0; i < with_axis.size(); ++i) {
      logs_[with_axis[i]] += shares[axis] * marginals[i];
    }
  }
}

void MixtureEvaluation::AddJoint(const ParzenMixture::Group& group) {
  const double margin = LogMargin();
  std::vector<JointAxis> axes;  // in the order of the group's, as all below
  std::vector<double> peaks;
  for (const size_t axis : group.axes) {
    axes.push_back(std::visit([](const auto& held) { return held.joint(); }, mixture_.axes[axis]));
    peaks.push_back(LogPeak(axis));
  }
  std::vector<JointPoint> points(points_.size());
  std::vector<JointTerm> terms(points.size() * axes.size());
  std::vector<double> log_priors(points.size(), 0.0);
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points_[i];
    JointTerm* const first = terms.data() + i * axes.size();
    JointTerm* last = first;
    for (size_t k = 0; k < axes.size(); ++k) {
      const Coordinate& here = point[group.axes[k]];
      if (!here.present) continue;
      const bool tabled = axes[k].kernel != nullptr;
      const double* table = tabled ? TableAt(group.axes[k], i).logs() : nullptr;
      log_priors[i] += tabled ? table[0] : ContinuousAxis::LogPrior(here.at);
      *last++ = {.axis = axes[k], .at = here.at, .table = table};
    }
    points[i] = {
        .terms = first, .num_terms = static_cast<size_t>(last - first), .reference = log_priors[i]};
    // From the last term backwards: what the axes after it may still add.
    double limit = log_priors[i] - margin;
    for (size_t k = axes.size(); k-- > 0;) {
      if (!point[group.axes[k]].present) continue;
      (--last)->limit = limit;
      limit -= peaks[k];
    }
    // `limit` is now what the peaks of all axes must be above less half the squares.
    points[i].most_squares = -2.0 * limit;
  }
  SumJoint(weights_, mixture_.ramp, points);
  // An observation without the axes has the prior's kernel in the sum, which is taken back.
  const double log_total =
      Log(mixture_.total_weight - group.weight_without + mixture_.prior_weight);
  for (size_t i = 0; i < points.size(); ++i) {
    const double of_prior =
        (mixture_.prior_weight - group.weight_without) * Exp(log_priors[i] - points[i].reference);
    const double log_sum = Log(points[i].sum.Total() + of_prior);
    logs_[i] += points[i].reference + log_sum - log_total;
  }
}

}  // namespace

bool ParzenMixture::HasAxis(size_t row, size_t axis) const {
  return std::visit([row](const auto& held) { return held.Has(row); }, axes[axis]);
}

bool ParzenMixture::HasAny(const Group& group, size_t row) const {
  return std::any_of(group.axes.begin(), group.axes.end(),
                     [this, row](size_t axis) { return HasAxis(row, axis); });
}

std::vector<double> LogDensities(const ParzenMixture& mixture, const PaddedColumn<double>& weights,
                                 std::span<const Point> points, Dependence dependence) {
  MixtureEvaluation evaluation(mixture, weights, points);
  if (dependence != Dependence::kIndependent) {
    for (const ParzenMixture::Group& group : mixture.groups) evaluation.AddJoint(group);
  }
  if (dependence == Dependence::kBoth) evaluation.AddMarginals(mixture.marginal_shares);
  if (dependence == Dependence::kIndependent) {
    evaluation.AddMarginals(std::vector<double>(mixture.axes.size(), 1.0));
  }
  return evaluation.TakeLogs();
}

}  // namespace hpo::sampler
