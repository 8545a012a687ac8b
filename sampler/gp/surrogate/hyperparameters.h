// Kernel parameters by maximum a posteriori: the log marginal likelihood of the observations plus
// a normal prior on the logarithm of each parameter, with analytic gradients, by L-BFGS-B.
//
//   ln p(y) = -1/2 y' K^-1 y - 1/2 ln det K - n/2 ln 2 pi,   K = k(X, X) + noise I
//   d ln p(y) / dt = 1/2 tr((a a' - K^-1) dK/dt),            a = K^-1 y
//
// Length scales grow with the square root of the number of axes, as distances do
// (Hvarfner et al. 2024, arXiv:2402.02229). Source of the likelihood: Rasmussen & Williams 2006,
// section 5.4.1. Pure; safe from any thread. Golden data: scripts/reference/gaussian_process.py.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sampler/gp/surrogate/matern_kernel.h"

namespace hpo::sampler {

// Of the logarithm of one parameter.
struct LogNormal {
  double mean = 0.0;
  double deviation = 1.0;
  bool operator==(const LogNormal&) const = default;
};

struct HyperparameterPrior {
  LogNormal length;  // of one axis, for a model of one axis, as a part of `side`
  LogNormal scale;
  LogNormal noise;
  // Of share / (1 - share) of what is a sum over the axes; nullopt: there is no sum.
  std::optional<LogNormal> additive;
  double side = 1.0;  // of the box that the points lie in, as a part of each axis
  bool operator==(const HyperparameterPrior&) const = default;
};

// For losses brought to mean 0 and variance 1. Narrow for lengths: what is not smooth must come out
// as noise, not as lengths so short that nothing is learned from anything. Chosen by the regrets of
// Branin, Hartmann6, Rosenbrock5 and Ackley10.
HyperparameterPrior DefaultPrior();

// The same for a process that may in part be a sum over the axes.
HyperparameterPrior AdditivePrior();

// As DefaultPrior for what lies in a box of this side: lengths are as much shorter.
HyperparameterPrior PriorWithin(double side);

// Logarithms of the parameters, in this order: weights, scale, noise, and where there is a sum over
// the axes share / (1 - share) of it; one weight for all axes where they are tied.
class LogParameters {
 public:
  // More axes than this share one length scale: so many cannot be told apart by a few trials.
  static constexpr size_t kMaxOwnLengths = 64;

  explicit LogParameters(size_t num_axes, bool additive = false)
      : num_axes_(num_axes), additive_(additive) {}

  size_t num_axes() const { return num_axes_; }
  bool tied() const { return num_axes_ > kMaxOwnLengths; }
  size_t num_weights() const { return tied() ? 1 : num_axes_; }
  bool additive() const { return additive_; }
  size_t size() const { return num_weights() + (additive_ ? 3 : 2); }
  KernelParameters ToKernel(std::span<const double> logs) const;

 private:
  size_t num_axes_;
  bool additive_;
};

// ln p(y) + ln prior and its gradient by the log parameters. `targets`: one per point, finite.
double LogPosterior(const PointTable& points, std::span<const double> targets,
                    const HyperparameterPrior& prior, const LogParameters& parameters,
                    std::span<const double> logs, std::span<double> gradient);

// The most probable parameters reached from the prior's centre; their LogPosterior, where it is
// asked for. Where the prior knows of a sum over the axes, and there are several axes that are not
// tied: the more probable of those with and without.
KernelParameters FitHyperparameters(const PointTable& points, std::span<const double> targets,
                                    const HyperparameterPrior& prior,
                                    double* log_posterior = nullptr);

}  // namespace hpo::sampler
