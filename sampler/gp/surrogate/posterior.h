// A Gaussian process with given kernel parameters after some observations, and trials under way as
// fantasies: each is taken to give the posterior mean (kriging believer, Ginsbourger et al. 2010),
// so it leaves the mean as it is and takes the uncertainty around it away.
//
// Growing or shrinking the points keeps the factor of those in common; the result equals one built
// again bit for bit. Source: Rasmussen & Williams 2006, algorithm 2.1.
// One owner; const members are safe from several threads.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sampler/gp/surrogate/matern_kernel.h"
#include "sampler/numeric/cholesky_factor.h"

namespace hpo::sampler {

// Of the process itself, without an observation's noise.
struct Prediction {
  double mean = 0.0;
  double deviation = 0.0;  // above 0
};

// Derivatives of a prediction by the axes. Of numeric axes only: a category's is meaningless.
struct PredictionSlopes {
  std::vector<double> mean;
  std::vector<double> deviation;
};

class Posterior {
 public:
  Posterior(KernelParameters kernel, size_t num_axes)
      : kernel_(std::move(kernel)), points_(num_axes) {}

  const KernelParameters& kernel() const { return kernel_; }

  // Makes the points those of `points`, in their order.
  void SetPoints(const PointTable& points);

  // The observations at the first targets.size() points; the others are fantasies.
  void SetTargets(std::span<const double> targets);

  // The posterior mean at each point, observed ones and then fantasies.
  std::vector<double> Means() const;

  // The mean of Predict(), and its slopes, alone. O(points). `slopes` may be null.
  double PredictMean(std::span<const double> x, std::vector<double>* slopes) const;

  // `slopes` may be null.
  Prediction Predict(std::span<const double> x, PredictionSlopes* slopes) const;

  // At many points, several times faster than one by one; equal to that but for rounding.
  std::vector<Prediction> Predict(std::span<const std::vector<double>> points) const;

 private:
  Prediction PredictionOf(double mean, double explained) const;

  KernelParameters kernel_;
  PointTable points_;
  CholeskyFactor factor_;
  std::vector<double> targets_;
  std::vector<double> alpha_;  // K^-1 y over the observations
};

}  // namespace hpo::sampler
