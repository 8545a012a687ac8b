// Where the values of a numeric domain lie in [0, 1], linearly or by logarithm, and back.
// A value on a grid stands for the cell of half a step around it; the outermost cells end at 0 and
// 1, so that all are equally wide (in value). Immutable; safe to share between threads.
// Source: Optuna 5.0 (optuna/_transform.py, optuna/samplers/_tpe/parzen_estimator.py).
#pragma once

#include "common/base/random.h"
#include "common/space/search_space.h"
#include "sampler/numeric/normal_kernel.h"

namespace hpo::sampler {

class NumericScale {
 public:
  // Domains as ValidateSpace accepts them.
  explicit NumericScale(const FloatDomain& domain);
  explicit NumericScale(const IntDomain& domain);
  // Of a float or int domain. Not for categorical domains.
  static NumericScale Of(const Domain& domain);
  // The real numbers of [low, high] by logarithm; 0 < low < high.
  static NumericScale Log(double low, double high);

  // False for a continuous domain, and for one of so many values that the density at a value says
  // the same as the mass of its cell.
  bool grid() const { return grid_; }

  // `value` as a coordinate; values outside the domain are moved to its ends.
  Coordinate At(double value) const;

  // The number at a position in [0, 1]; not rounded to the grid.
  double ValueAt(double position) const;

  // The positions that round into [low, high], two values of the domain: whole cells on a grid.
  Interval Covering(double low, double high) const;

 private:
  NumericScale(double low, double high, double half_step, bool log);

  double Position(double value) const;

  double low_;  // transformed and, on a grid, widened by half a step
  double high_;
  double half_step_;
  double shrink_ = 1.0;  // keeps high_ - low_ finite
  bool log_;
  bool grid_;
};

// The last value of the domain that lies on its grid.
double LastValue(const FloatDomain& domain);
int64_t LastValue(const IntDomain& domain);

// The value of a float or int domain nearest to `value`, on its grid. Not for categorical domains.
ParamValue NearestValue(const Domain& domain, double value);

// One value of any domain, uniformly: each grid value and choice alike; with log, uniformly in the
// logarithm (integers by the cells of half a step around them).
ParamValue DrawUniform(const Domain& domain, Rng& rng);

// The value at a part of the domain, 0 <= part < 1: of equal parts each grid value and choice has
// one, in order; others as DrawUniform.
ParamValue ValueAtPart(const Domain& domain, double part);

}  // namespace hpo::sampler
