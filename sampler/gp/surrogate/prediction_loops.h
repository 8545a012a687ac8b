// The loops of prediction_lanes.h, to be compiled once for each kind of processor: included by
// prediction_lanes.cc and prediction_lanes_<path>.cc alone. They call nothing of a library: what is
// inline there would be compiled for the one processor and linked into code for another.
#pragma once

#include "sampler/gp/surrogate/prediction_lanes.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {

// `kPath` keeps the functions of different files apart.
template <SimdPath kPath>
struct PredictionLoopsOn {
  static_assert(kPointsTogether == kNumLanes);
  static constexpr double kSqrt5 = 2.23606797749978969641;
  // Partial sums of a row, so that none waits for the one before.
  static constexpr size_t kSums = 4;

  HPO_PORTABLE static Lanes Sqrt(const Lanes& x) {
    Lanes root;
    for (int i = 0; i < kNumLanes; ++i) root[i] = __builtin_sqrt(x[i]);
    return root;
  }

  HPO_PORTABLE static Lanes Matern(double scale, const Lanes& square) {
    const Lanes scaled = kSqrt5 * Sqrt(square);
    return (1.0 + scaled + scaled * scaled * (1.0 / 3.0)) * (scale * Exp(-scaled));
  }

  // Covariances with one of the process's points (matern_kernel.h).
  HPO_PORTABLE static Lanes Covariance(const ProcessView& process, const double* positions,
                                       size_t point) {
    const auto axes = static_cast<double>(process.num_axes);
    Lanes square{};
    Lanes sum{};
    for (size_t axis = 0; axis < process.num_axes; ++axis) {
      const Lanes apart = LoadLanes(positions + axis * kNumLanes) - process.columns[axis][point];
      const Lanes distance = apart * apart;
      const Lanes along = process.weights[axis] * (distance < 1.0 ? distance : Lanes{} + 1.0);
      square += along;
      if (process.additive > 0.0) {
        sum += Matern(process.additive * process.scale / axes, axes * along);
      }
    }
    return Matern((1.0 - process.additive) * process.scale, square) + sum;
  }

  // The inner product of a row of the factor with what is solved before it.
  HPO_PORTABLE static Lanes RowTimes(const double* row, const double* solved, size_t length) {
    Lanes sums[kSums] = {};
    size_t k = 0;
    for (; k + kSums <= length; k += kSums) {
      for (size_t part = 0; part < kSums; ++part) {
        sums[part] += row[k + part] * LoadLanes(solved + (k + part) * kNumLanes);
      }
    }
    for (; k < length; ++k) sums[0] += row[k] * LoadLanes(solved + k * kNumLanes);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  static void Predict(const ProcessView& process, const double* positions, double* scratch,
                      PredictedLanes& result) {
    Lanes mean{};
    Lanes explained{};
    const double* row = process.factor;
    for (size_t i = 0; i < process.num_points; ++i) {
      const Lanes covariance = Covariance(process, positions, i);
      if (i < process.num_observed) mean += covariance * process.alpha[i];
      const Lanes solved = (covariance - RowTimes(row, scratch, i)) / row[i];
      explained += solved * solved;
      StoreLanes(solved, scratch + i * kNumLanes);
      row += i + 1;
    }
    StoreLanes(mean, result.mean);
    StoreLanes(explained, result.explained);
  }

  static constexpr PredictionLoops kLoops = {&Predict};
};

}  // namespace hpo::sampler
