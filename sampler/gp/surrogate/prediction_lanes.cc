#include "sampler/gp/surrogate/prediction_lanes.h"

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

constexpr double kSqrt5 = 2.23606797749978969641;
// Partial sums of a row, so that none waits for the one before.
constexpr size_t kSums = 4;

HPO_PORTABLE Lanes Sqrt(const Lanes& x) {
  const auto root = [](const TwoLanes& pair) {
    return TwoLanes{__builtin_sqrt(pair[0]), __builtin_sqrt(pair[1])};
  };
  return {root(x.a), root(x.b), root(x.c), root(x.d)};
}

HPO_PORTABLE Lanes Matern(double scale, const Lanes& square) {
  const Lanes scaled = kSqrt5 * Sqrt(square);
  return (1.0 + scaled + scaled * scaled * (1.0 / 3.0)) * (scale * ExpDown(-scaled));
}

// Covariances with one of the process's points (matern_kernel.h).
HPO_PORTABLE Lanes Covariance(const ProcessView& process, const double* positions, size_t point) {
  const auto axes = static_cast<double>(process.num_axes);
  Lanes square = 0.0;
  Lanes sum = 0.0;
  for (size_t axis = 0; axis < process.num_axes; ++axis) {
    const Lanes apart = LoadLanes(positions + axis * kNumLanes) - process.columns[axis][point];
    const Lanes distance = apart * apart;
    const Lanes along = process.weights[axis] * Smaller(distance, 1.0);
    square += along;
    if (process.additive > 0.0) {
      sum += Matern(process.additive * process.scale / axes, axes * along);
    }
  }
  return Matern((1.0 - process.additive) * process.scale, square) + sum;
}

// The inner product of a row of the factor with four of the eight lanes that are solved before it:
// as many sums as there are registers for.
HPO_PORTABLE void HalfRowTimes(const double* row, const double* solved, size_t length,
                               TwoLanes& first, TwoLanes& second) {
  TwoLanes firsts[kSums] = {};
  TwoLanes seconds[kSums] = {};
  const auto add = [&](size_t k, size_t part) {
    TwoLanes pairs[2];
    __builtin_memcpy(pairs, solved + k * kNumLanes, sizeof(pairs));
    firsts[part] += row[k] * pairs[0];
    seconds[part] += row[k] * pairs[1];
  };
  size_t k = 0;
  for (; k + kSums <= length; k += kSums) {
    add(k, 0);
    add(k + 1, 1);
    add(k + 2, 2);
    add(k + 3, 3);
  }
  for (; k < length; ++k) add(k, 0);
  first = (firsts[0] + firsts[1]) + (firsts[2] + firsts[3]);
  second = (seconds[0] + seconds[1]) + (seconds[2] + seconds[3]);
}

HPO_PORTABLE Lanes RowTimes(const double* row, const double* solved, size_t length) {
  Lanes product;
  HalfRowTimes(row, solved, length, product.a, product.b);
  HalfRowTimes(row, solved + kNumLanes / 2, length, product.c, product.d);
  return product;
}

}  // namespace

void PredictTogether(const ProcessView& process, const double* positions, double* scratch,
                     PredictedLanes& result) {
  Lanes mean = 0.0;
  Lanes explained = 0.0;
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

}  // namespace hpo::sampler
