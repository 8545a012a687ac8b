#include "sampler/gp/surrogate/hyperparameters.h"

#include <algorithm>
#include <cmath>

#include "Eigen/Core"
#include "sampler/numeric/cholesky_factor.h"
#include "sampler/numeric/lbfgs_b.h"
#include "sampler/numeric/packet_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

// Bounds of the logarithms, where covariances are still safely positive definite.
constexpr double kLowestWeight = -12.0, kHighestWeight = 7.0;
constexpr double kLowestScale = -6.0, kHighestScale = 6.0;
constexpr double kLowestNoise = -18.5, kHighestNoise = 1.0;
constexpr double kLowestAdditive = -7.0, kHighestAdditive = 7.0;

using Values = Eigen::Map<Eigen::ArrayXd>;
using ConstValues = Eigen::Map<const Eigen::ArrayXd>;

struct Bounds {
  std::vector<double> lower;
  std::vector<double> upper;
};

// How much larger the logarithms of weights are in a box than over whole axes.
double LogWeightIn(const HyperparameterPrior& prior) { return -2.0 * PortableLog(prior.side); }

Bounds BoundsOf(const LogParameters& parameters, const HyperparameterPrior& prior) {
  const double in_box = LogWeightIn(prior);
  Bounds bounds{std::vector<double>(parameters.num_weights(), kLowestWeight + in_box),
                std::vector<double>(parameters.num_weights(), kHighestWeight + in_box)};
  bounds.lower.insert(bounds.lower.end(), {kLowestScale, kLowestNoise});
  bounds.upper.insert(bounds.upper.end(), {kHighestScale, kHighestNoise});
  if (parameters.additive()) {
    bounds.lower.push_back(kLowestAdditive);
    bounds.upper.push_back(kHighestAdditive);
  }
  return bounds;
}

// Weights are 1 / length^2, and lengths grow with the square root of the number of axes.
LogNormal WeightPrior(const HyperparameterPrior& prior, size_t num_axes) {
  const double axes = static_cast<double>(std::max<size_t>(num_axes, 1));
  return {-2.0 * prior.length.mean + LogWeightIn(prior) - PortableLog(axes),
          2.0 * prior.length.deviation};
}

std::vector<LogNormal> PriorOf(const HyperparameterPrior& prior, const LogParameters& parameters) {
  std::vector<LogNormal> result(parameters.num_weights(),
                                WeightPrior(prior, parameters.num_axes()));
  result.push_back(prior.scale);
  result.push_back(prior.noise);
  if (parameters.additive()) result.push_back(*prior.additive);
  return result;
}

double LogPrior(const std::vector<LogNormal>& prior, std::span<const double> logs,
                std::span<double> gradient) {
  double sum = 0.0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const double z = (logs[i] - prior[i].mean) / prior[i].deviation;
    sum += -0.5 * z * z - PortableLog(prior[i].deviation) - kLogSqrtTwoPi;
    gradient[i] -= z / prior[i].deviation;
  }
  return sum;
}

// The covariances of all pairs, and what the gradient needs of them.
class PairwiseKernel {
 public:
  PairwiseKernel(const PointTable& points, const KernelParameters& kernel)
      : points_(points), kernel_(kernel) {
    for (size_t i = 0; i < points.size(); ++i) {
      Covariances(kernel, points, points.Point(i), i, values_, &slopes_);
      factor_.Append({values_.data(), i}, kernel.scale + kernel.noise);
      const auto add = [&](const std::vector<double>& values, std::vector<double>& all) {
        all.insert(all.end(), values.data(), values.data() + i);
      };
      add(values_, covariances_);
      all_.by_square.resize(slopes_.by_square.size());
      for (size_t k = 0; k < all_.by_square.size(); ++k) {
        add(slopes_.by_square[k], all_.by_square[k]);
      }
      if (!slopes_.by_additive.empty()) add(slopes_.by_additive, all_.by_additive);
    }
  }

  const CholeskyFactor& factor() const { return factor_; }

  // Adds the derivatives of ln p(y); `alpha` = K^-1 y.
  void AddGradient(std::span<const double> alpha, const LogParameters& parameters,
                   std::span<double> gradient) const {
    const std::vector<double> inverse = factor_.Inverse();
    std::vector<double> pull;  // a_i a_j - K^-1_ij
    double by_scale = 0.0;
    double by_noise = 0.0;
    double by_additive = 0.0;
    for (size_t i = 0; i < points_.size(); ++i) {
      const auto length = static_cast<Eigen::Index>(i);
      const double* inverse_row = inverse.data() + i * (i + 1) / 2;
      const size_t pairs = i * (i - 1) / 2;
      pull.assign(inverse_row, inverse_row + i);
      Values row(pull.data(), length);
      row = alpha[i] * ConstValues(alpha.data(), length) - row;
      by_scale += (row * ConstValues(covariances_.data() + pairs, length)).sum();
      const double diagonal = 0.5 * (alpha[i] * alpha[i] - inverse_row[i]);
      by_scale += diagonal * kernel_.scale;
      by_noise += diagonal * kernel_.noise;
      if (parameters.additive()) {
        by_additive += (row * ConstValues(all_.by_additive.data() + pairs, length)).sum();
      }
      AddByWeights(i, row, parameters, gradient);
    }
    gradient[parameters.num_weights()] += by_scale;
    gradient[parameters.num_weights() + 1] += by_noise;
    if (parameters.additive()) {
      gradient[parameters.num_weights() + 2] +=
          kernel_.additive * (1.0 - kernel_.additive) * by_additive;
    }
  }

 private:
  void AddByWeights(size_t point, const Values& pull, const LogParameters& parameters,
                    std::span<double> gradient) const {
    const size_t pairs = point * (point - 1) / 2;
    for (size_t axis = 0; axis < points_.num_axes(); ++axis) {
      const ConstValues column(points_.column(axis).data(), pull.size());
      const double sum = (pull * ConstValues(all_.BySquare(axis).data() + pairs, pull.size()) *
                          (column - points_.column(axis)[point]).square().min(1.0))
                             .sum();
      gradient[parameters.tied() ? 0 : axis] += kernel_.weights[axis] * sum;
    }
  }

  const PointTable& points_;
  const KernelParameters& kernel_;
  CholeskyFactor factor_;
  std::vector<double> covariances_;  // of each point with those before it, row by row
  CovarianceSlopes all_;             // likewise
  std::vector<double> values_;
  CovarianceSlopes slopes_;
};

LbfgsBResult FitLogs(const PointTable& points, std::span<const double> targets,
                     const HyperparameterPrior& prior, const LogParameters& parameters) {
  const Bounds bounds = BoundsOf(parameters, prior);
  const SmoothFunction loss = [&](std::span<const double> logs, std::span<double> gradient) {
    const double value = LogPosterior(points, targets, prior, parameters, logs, gradient);
    for (double& entry : gradient) entry = -entry;
    return -value;
  };
  const LbfgsBOptions options{.max_iterations = 40,
                              .max_evaluations = 50,
                              .gradient_tolerance = 1e-3,
                              .value_tolerance = 1e-5};
  std::vector<double> start;
  for (const LogNormal& each : PriorOf(prior, parameters)) start.push_back(each.mean);
  return MinimizeInBox(loss, start, bounds.lower, bounds.upper, options);
}

}  // namespace

HyperparameterPrior DefaultPrior() {
  return {.length = {.mean = -1.0, .deviation = 0.4},
          .scale = {.mean = 0.0, .deviation = 0.7},
          .noise = {.mean = -8.0, .deviation = 2.0}};
}

HyperparameterPrior AdditivePrior() {
  HyperparameterPrior prior = DefaultPrior();
  prior.additive = LogNormal{.mean = 0.0, .deviation = 1.5};
  return prior;
}

HyperparameterPrior PriorWithin(double side) {
  HyperparameterPrior prior = DefaultPrior();
  prior.side = side;
  return prior;
}

KernelParameters LogParameters::ToKernel(std::span<const double> logs) const {
  KernelParameters kernel;
  for (size_t axis = 0; axis < num_axes_; ++axis) {
    kernel.weights.push_back(PortableExp(logs[tied() ? 0 : axis]));
  }
  kernel.scale = PortableExp(logs[num_weights()]);
  kernel.noise = PortableExp(logs[num_weights() + 1]);
  if (additive_) kernel.additive = 1.0 / (1.0 + PortableExp(-logs[num_weights() + 2]));
  return kernel;
}

double LogPosterior(const PointTable& points, std::span<const double> targets,
                    const HyperparameterPrior& prior, const LogParameters& parameters,
                    std::span<const double> logs, std::span<double> gradient) {
  const KernelParameters kernel = parameters.ToKernel(logs);
  const PairwiseKernel pairs(points, kernel);
  std::vector<double> alpha(targets.begin(), targets.end());
  pairs.factor().SolveLower(alpha);
  double square = 0.0;
  for (const double value : alpha) square += value * value;
  pairs.factor().SolveUpper(alpha);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  pairs.AddGradient(alpha, parameters, gradient);
  return -0.5 * square - 0.5 * pairs.factor().LogDeterminant() -
         kLogSqrtTwoPi * static_cast<double>(points.size()) +
         LogPrior(PriorOf(prior, parameters), logs, gradient);
}

KernelParameters FitHyperparameters(const PointTable& points, std::span<const double> targets,
                                    const HyperparameterPrior& prior, double* log_posterior) {
  const LogParameters without(points.num_axes());
  LbfgsBResult fit = FitLogs(points, targets, prior, without);
  KernelParameters kernel = without.ToKernel(fit.x);
  if (prior.additive.has_value() && points.num_axes() > 1 && !without.tied()) {
    const LogParameters with(points.num_axes(), true);
    const LbfgsBResult additive = FitLogs(points, targets, prior, with);
    if (additive.value < fit.value) {
      fit = additive;
      kernel = with.ToKernel(fit.x);
    }
  }
  if (log_posterior != nullptr) *log_posterior = -fit.value;
  return kernel;
}

}  // namespace hpo::sampler
