// How much a configuration promises: the log expected improvement of quality, plus, where trials
// ran out of memory or failed, a barrier for each of these around what is likely to. Or its lower
// confidence bound. Immutable; safe to share between threads.
// Source: log_expected_improvement.h; constrained expected improvement: Gardner et al. 2014.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sampler/gp/prior_trend.h"
#include "sampler/gp/surrogate/input_space.h"
#include "sampler/gp/surrogate/posterior.h"

namespace hpo::sampler {

// A posterior and the axes it is over.
struct Surrogate {
  const InputSpace* inputs = nullptr;
  const Posterior* posterior = nullptr;
  // Over the same axes: what the posterior is the remainder to (prior_trend.h). May be null.
  const Trend* trend = nullptr;

  // `slopes` may be null.
  Prediction Predict(std::span<const double> x, PredictionSlopes* slopes) const;
  std::vector<Prediction> Predict(std::span<const Codes> configurations) const;
};

// What a score is made of.
struct AcquisitionParts {
  double log_improvement = 0.0;
  // So small that next to barriers it counts no more.
  bool negligible = false;
  // By barrier: how probable it is that the configuration is none of what is to be avoided.
  std::vector<double> safe;
};

class Acquisition {
 public:
  // `best`: the posterior mean to improve on. `barriers`: of labels, above 0 for what is to be
  // avoided; none where nothing was met that is. What they point to must outlive this object.
  Acquisition(Surrogate quality, double best, std::vector<Surrogate> barriers)
      : quality_(quality), best_(best), barriers_(std::move(barriers)) {}

  // How good a configuration may still be: `deviations` below the mean, negated.
  static Acquisition OfLowerBound(Surrogate quality, double deviations) {
    Acquisition acquisition(quality, 0.0, {});
    acquisition.deviations_ = deviations;
    return acquisition;
  }

  // Larger is better; finite. One for each configuration.
  std::vector<double> Scores(std::span<const Codes> configurations) const;

  AcquisitionParts PartsOf(const Codes& codes) const;

  // The score of one, with its derivatives by the codes of `parameters`, which are continuous and
  // active.
  double Score(const Codes& codes, std::span<const size_t> parameters,
               std::span<double> slopes) const;

 private:
  Surrogate quality_;
  double best_;
  std::optional<double> deviations_;  // of a lower bound
  std::vector<Surrogate> barriers_;
};

}  // namespace hpo::sampler
