#include "sampler/parzen_estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "sampler/truncated_normal.h"

namespace hpo {
namespace {

using Kind = ParzenAxis::Kind;

const double kLogSqrtTwoPi = 0.5 * std::log(2.0 * std::numbers::pi);
// Without the magic clip, what keeps equal observations from a bandwidth of zero.
constexpr double kSmallestBandwidth = 1e-12;
constexpr size_t kFullWeights = 25;

absl::Status CheckCoordinate(const ParzenAxis& axis, const Coordinate& coordinate) {
  if (!coordinate.present) return absl::OkStatus();
  const double limit =
      axis.kind == Kind::kCategorical ? static_cast<double>(axis.num_choices) - 1.0 : 1.0;
  if (!(coordinate.at >= 0.0 && coordinate.at <= limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a coordinate in [0, ", limit, "], got ", coordinate.at));
  }
  return absl::OkStatus();
}

absl::Status CheckPoint(const std::vector<ParzenAxis>& axes, const Point& point) {
  if (point.size() != axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a point of ", axes.size(), " axes, got ", point.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    HPO_RETURN_IF_ERROR(Annotate(CheckCoordinate(axes[i], point[i]), absl::StrCat("axis ", i)));
  }
  return absl::OkStatus();
}

double LogSumExp(const std::vector<double>& terms) {
  const double largest = *std::max_element(terms.begin(), terms.end());
  if (std::isinf(largest)) return largest;
  double sum = 0.0;
  for (const double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum);
}

// Index of the interval of `cumulative` (increasing) that holds a uniform draw.
size_t DrawByWeight(const std::vector<double>& cumulative, Rng& rng) {
  const double draw = rng.Uniform() * cumulative.back();
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), draw);
  return std::min(static_cast<size_t>(found - cumulative.begin()), cumulative.size() - 1);
}

std::vector<double> LogNormalised(const std::vector<double>& weights) {
  const double log_total = std::log(std::accumulate(weights.begin(), weights.end(), 0.0));
  std::vector<double> logs;
  logs.reserve(weights.size());
  for (const double weight : weights) logs.push_back(std::log(weight) - log_total);
  return logs;
}

}  // namespace

std::vector<double> RecencyWeights(size_t n) {
  std::vector<double> weights(n, 1.0);
  if (n <= kFullWeights) return weights;
  const size_t num_ramp = n - kFullWeights;
  const double first = 1.0 / static_cast<double>(n);
  for (size_t i = 0; i < num_ramp; ++i) {
    const double fraction =
        num_ramp == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(num_ramp - 1);
    weights[i] = first + (1.0 - first) * fraction;
  }
  return weights;
}

std::vector<double> NeighbourBandwidths(std::span<const double> positions, Interval range,
                                        const ParzenOptions& options) {
  const size_t n = positions.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return positions[a] < positions[b]; });
  const double width = range.high - range.low;
  const double smallest = options.magic_clip
                              ? width / static_cast<double>(std::min<size_t>(100, n + 2))
                              : kSmallestBandwidth;
  const bool use_ends = options.use_ends || n < 2;
  std::vector<double> bandwidths(n);
  for (size_t i = 0; i < n; ++i) {
    const double here = positions[order[i]];
    const bool first = i == 0;
    const bool last = i + 1 == n;
    const double left = here - (first ? range.low : positions[order[i - 1]]);
    const double right = (last ? range.high : positions[order[i + 1]]) - here;
    double gap = std::max(left, right);
    if (!use_ends && first) gap = right;
    if (!use_ends && last) gap = left;
    bandwidths[order[i]] = std::clamp(gap, smallest, width);
  }
  return bandwidths;
}

absl::StatusOr<ParzenEstimator> ParzenEstimator::Create(std::vector<ParzenAxis> axes,
                                                        std::span<const Point> points,
                                                        const ParzenOptions& options) {
  if (!std::isfinite(options.prior_weight) || options.prior_weight < 0.0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a prior weight >= 0, got ", options.prior_weight));
  }
  for (const Point& point : points) HPO_RETURN_IF_ERROR(CheckPoint(axes, point));

  ParzenEstimator result;
  result.axes_ = std::move(axes);
  std::vector<double> weights = RecencyWeights(points.size());
  weights.push_back(points.empty() ? 1.0 : options.prior_weight);
  result.log_weights_ = LogNormalised(weights);

  result.numeric_.resize(result.axes_.size());
  result.categorical_.resize(result.axes_.size());
  for (size_t axis = 0; axis < result.axes_.size(); ++axis) {
    result.FitMarginal(axis, points, weights);
    if (result.axes_[axis].kind == Kind::kCategorical) {
      result.FitCategorical(axis, points, options);
    } else {
      result.FitNumeric(axis, points, options);
    }
  }
  return result;
}

void ParzenEstimator::FitMarginal(size_t axis, std::span<const Point> points,
                                  std::vector<double> weights) {
  for (size_t i = 0; i < points.size(); ++i) {
    if (!points[i][axis].present) weights[i] = 0.0;
  }
  // Without a prior nothing may be left: then every component counts, by its kernel of the prior.
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0.0; })) {
    weights.assign(weights.size(), 1.0);
  }
  Marginal marginal{.log_weights = LogNormalised(weights), .cumulative = weights};
  std::partial_sum(weights.begin(), weights.end(), marginal.cumulative.begin());
  marginals_.push_back(std::move(marginal));
}

void ParzenEstimator::FitNumeric(size_t axis, std::span<const Point> points,
                                 const ParzenOptions& options) {
  constexpr Interval kRange{0.0, 1.0};
  std::vector<double> positions;
  for (const Point& point : points) {
    if (point[axis].present) positions.push_back(point[axis].at);
  }
  const std::vector<double> bandwidths = NeighbourBandwidths(positions, kRange, options);
  NumericKernels& kernels = numeric_[axis];
  size_t next = 0;
  for (size_t i = 0; i <= points.size(); ++i) {
    const bool observed = i < points.size() && points[i][axis].present;
    kernels.centre.push_back(observed ? positions[next] : 0.5);
    kernels.bandwidth.push_back(observed ? bandwidths[next] : 1.0);
    if (observed) ++next;
    const double centre = kernels.centre.back();
    const double bandwidth = kernels.bandwidth.back();
    const double log_mass =
        LogNormalMass((kRange.low - centre) / bandwidth, (kRange.high - centre) / bandwidth);
    const bool grid = axes_[axis].kind == Kind::kGrid;
    kernels.log_norm.push_back(grid ? log_mass : log_mass + kLogSqrtTwoPi + std::log(bandwidth));
  }
}

void ParzenEstimator::FitCategorical(size_t axis, std::span<const Point> points,
                                     const ParzenOptions& options) {
  CategoricalKernels& kernels = categorical_[axis];
  size_t num_observed = 0;
  for (const Point& point : points) {
    const bool observed = point[axis].present;
    kernels.choice.push_back(observed ? static_cast<size_t>(point[axis].at)
                                      : CategoricalKernels::kPrior);
    if (observed) ++num_observed;
  }
  kernels.choice.push_back(CategoricalKernels::kPrior);
  const double num_choices = static_cast<double>(axes_[axis].num_choices);
  const double smoothing = options.prior_weight / static_cast<double>(num_observed + 1);
  const double total = 1.0 + num_choices * smoothing;
  kernels.log_same = std::log((smoothing + 1.0) / total);
  kernels.log_other = std::log(smoothing / total);
  kernels.log_prior = -std::log(num_choices);
}

void ParzenEstimator::AddLogKernels(size_t axis, const Coordinate& coordinate,
                                    std::vector<double>& sums) const {
  if (axes_[axis].kind == Kind::kCategorical) {
    const CategoricalKernels& kernels = categorical_[axis];
    const size_t choice = static_cast<size_t>(coordinate.at);
    for (size_t i = 0; i < sums.size(); ++i) {
      const size_t own = kernels.choice[i];
      const double log_seen = own == choice ? kernels.log_same : kernels.log_other;
      sums[i] += own == CategoricalKernels::kPrior ? kernels.log_prior : log_seen;
    }
    return;
  }
  const NumericKernels& kernels = numeric_[axis];
  const bool grid = axes_[axis].kind == Kind::kGrid;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double centre = kernels.centre[i];
    const double bandwidth = kernels.bandwidth[i];
    if (grid) {
      sums[i] += LogNormalMass((coordinate.cell.low - centre) / bandwidth,
                               (coordinate.cell.high - centre) / bandwidth);
    } else {
      const double z = (coordinate.at - centre) / bandwidth;
      sums[i] += -0.5 * z * z;
    }
    sums[i] -= kernels.log_norm[i];
  }
}

double ParzenEstimator::LogDensity(const Point& point) const {
  std::vector<double> sums = log_weights_;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (point[axis].present) AddLogKernels(axis, point[axis], sums);
  }
  return LogSumExp(sums);
}

double ParzenEstimator::LogProductOfMarginals(const Point& point) const {
  double product = 0.0;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (!point[axis].present) continue;
    std::vector<double> sums = marginals_[axis].log_weights;
    AddLogKernels(axis, point[axis], sums);
    product += LogSumExp(sums);
  }
  return product;
}

size_t ParzenEstimator::DrawComponent(size_t axis, Rng& rng) const {
  return DrawByWeight(marginals_[axis].cumulative, rng);
}

double ParzenEstimator::DrawPosition(size_t component, size_t axis, Interval within,
                                     Rng& rng) const {
  const double centre = numeric_[axis].centre[component];
  const double bandwidth = numeric_[axis].bandwidth[component];
  const double z = TruncatedNormalQuantile(rng.Uniform(), (within.low - centre) / bandwidth,
                                           (within.high - centre) / bandwidth);
  return std::clamp(centre + z * bandwidth, within.low, within.high);
}

size_t ParzenEstimator::DrawChoice(size_t component, size_t axis, std::span<const size_t> allowed,
                                   Rng& rng) const {
  const CategoricalKernels& kernels = categorical_[axis];
  const size_t own = kernels.choice[component];
  std::vector<double> cumulative;
  double sum = 0.0;
  for (const size_t choice : allowed) {
    const double log_seen = own == choice ? kernels.log_same : kernels.log_other;
    sum += own == CategoricalKernels::kPrior ? 1.0 : std::exp(log_seen);
    cumulative.push_back(sum);
  }
  // With a prior weight of zero the component may allow none of them.
  if (!(sum > 0.0)) return allowed[rng.Below(allowed.size())];
  return allowed[DrawByWeight(cumulative, rng)];
}

}  // namespace hpo
