// The loops of kernel_sums.h, to be compiled once for each kind of processor: included by
// kernel_sums.cc and kernel_sums_<path>.cc alone. They call nothing of a library: what is inline
// there would be compiled for the one processor and linked into code for another.
#pragma once

#include "sampler/kernel_sums.h"
#include "sampler/portable_math.h"

namespace hpo {

// `kPath` keeps the functions of different files apart.
template <SimdPath kPath>
struct KernelLoopsOn {
  static constexpr size_t kNumFloatLanes = 16;
  typedef float FloatLanes __attribute__((vector_size(4 * kNumFloatLanes)));
  typedef int32_t FloatLaneIndices __attribute__((vector_size(4 * kNumFloatLanes)));

  HPO_PORTABLE static FloatLanes LoadFloatLanes(const float* from) {
    FloatLanes lanes;
    __builtin_memcpy(&lanes, from, sizeof(lanes));
    return lanes;
  }

  static constexpr size_t kWidth = kNumLanes;
  static constexpr size_t kVectors = kKernelBlock / kWidth;
  static constexpr Lanes kRanks = {0, 1, 2, 3, 4, 5, 6, 7};

  HPO_PORTABLE static Lanes WeightsOf(const RecencyRamp& ramp, const Lanes& rank) {
    const Lanes weight = rank * ramp.slope + ramp.first;
    return weight < 1.0 ? weight : Lanes{} + 1.0;
  }

  HPO_PORTABLE static Lanes Larger(const Lanes& a, const Lanes& b) { return a > b ? a : b; }

  HPO_PORTABLE static double Largest(const Lanes& lanes) {
    const Lanes four = Larger(lanes, __builtin_shuffle(lanes, LaneBits{4, 5, 6, 7, 0, 1, 2, 3}));
    const Lanes two = Larger(four, __builtin_shuffle(four, LaneBits{2, 3, 0, 1, 6, 7, 4, 5}));
    return two[0] > two[1] ? two[0] : two[1];
  }

  HPO_PORTABLE static float Least(const FloatLanes& lanes) {
    FloatLanes least = lanes;
    const FloatLaneIndices halves = {8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7};
    const FloatLaneIndices fours = {4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11};
    const FloatLaneIndices twos = {2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13};
    FloatLanes other = __builtin_shuffle(least, halves);
    least = other < least ? other : least;
    other = __builtin_shuffle(least, fours);
    least = other < least ? other : least;
    other = __builtin_shuffle(least, twos);
    least = other < least ? other : least;
    return least[0] < least[1] ? least[0] : least[1];
  }

  static size_t SizeOfBlock(size_t first, size_t num_kernels) {
    return num_kernels - first < kKernelBlock ? num_kernels - first : kKernelBlock;
  }

  // The widest that a run may be to fold, in bandwidths.
  static constexpr double kWidestRun = 0.4;

  static bool FoldRun(const SortedKernels& kernels, const RecencyRamp& ramp, size_t first,
                      size_t lane, FoldedRuns& fold) {
    constexpr size_t kMoments = FoldedRuns::kNumMoments;
    const double low = kernels.centre[first];
    const double high = kernels.centre[first + kernels.run - 1];
    if ((high - low) * fold.inverse > kWidestRun) return false;
    fold.middle[lane] = low + (high - low) * 0.5;
    Lanes moments[kMoments] = {};
    for (size_t i = first; i < first + kernels.run; i += kWidth) {
      const Lanes distance = (LoadLanes(kernels.centre + i) - fold.middle[lane]) * fold.inverse;
      Lanes moment = WeightsOf(ramp, LoadLanes(kernels.rank + i)) * LoadLanes(kernels.scale + i);
      moments[0] += moment;
      for (size_t k = 1; k < kMoments; ++k) {
        moment *= distance * (1.0 / static_cast<double>(k));
        moments[k] += moment;
      }
    }
    for (size_t k = 0; k < kMoments; ++k) {
      double total = 0.0;
      for (size_t i = 0; i < kWidth; ++i) total += moments[k][i];
      fold.moments[k][lane] = total;
    }
    return true;
  }

  static void FoldRuns(const SortedKernels& kernels, double least, const RecencyRamp& ramp,
                       FoldedRuns* folds, size_t num_folds) {
    const size_t size = kWidth * kernels.run;
    for (size_t f = 0; f < num_folds; ++f) {
      const size_t first = f * size;
      FoldedRuns& fold = folds[f];
      fold.inverse = 1.0 / least;
      fold.folded = true;
      for (size_t i = first; i < first + size; i += kKernelBlock) {
        fold.folded = fold.folded && kernels.widest[i / kKernelBlock] == least;
      }
      for (size_t lane = 0; lane < kWidth && fold.folded; ++lane) {
        fold.folded = FoldRun(kernels, ramp, first + lane * kernels.run, lane, fold);
      }
    }
  }

  HPO_PORTABLE static Lanes SumOfRuns(const FoldedRuns& fold, double at) {
    const Lanes z = (at - LoadLanes(fold.middle)) * fold.inverse;
    Lanes before = Lanes{} + 1.0;
    Lanes hermite = z;
    Lanes sum = LoadLanes(fold.moments[0]) + LoadLanes(fold.moments[1]) * z;
    for (size_t k = 2; k < FoldedRuns::kNumMoments; ++k) {
      const Lanes next = z * hermite - before * static_cast<double>(k - 1);
      before = hermite;
      hermite = next;
      sum += LoadLanes(fold.moments[k]) * hermite;
    }
    return sum * Exp(z * z * -0.5);
  }

  HPO_PORTABLE static Lanes SumOfBlock(const SortedKernels& kernels, const RecencyRamp& ramp,
                                       size_t first, size_t size, double at) {
    Lanes sum = {};
    for (size_t i = first; i < first + size; i += kWidth) {
      const Lanes z = (at - LoadLanes(kernels.centre + i)) * LoadLanes(kernels.inverse + i);
      const Lanes weight =
          WeightsOf(ramp, LoadLanes(kernels.rank + i)) * LoadLanes(kernels.scale + i);
      sum += weight * Exp(z * z * -0.5);  // 0 after the last
    }
    return sum;
  }

  static void SumMarginal(const SortedKernels& kernels, const RecencyRamp& ramp, double reach,
                          MarginalPoint* points, size_t num_points) {
    const size_t folded_size = kWidth * kernels.run;
    const size_t folds_end = folded_size * kernels.num_folds;
    for (size_t first = 0, size = 0; first < kernels.size; first += size) {
      const bool at_fold = first < folds_end && first % folded_size == 0;
      const FoldedRuns* fold = at_fold ? kernels.folds + first / folded_size : nullptr;
      const bool folded = at_fold && fold->folded;
      size = folded ? folded_size : SizeOfBlock(first, kernels.size);
      const double near = reach * kernels.widest[first / kKernelBlock];
      const double low = kernels.centre[first] - near;
      const double high = kernels.centre[first + size - 1] + near;
      for (MarginalPoint* point = points; point < points + num_points; ++point) {
        if (point->at < low || point->at > high) continue;
        const Lanes sum = folded ? SumOfRuns(*fold, point->at)
                                 : SumOfBlock(kernels, ramp, first, size, point->at);
        StoreLanes(LoadLanes(point->sum.lanes) + sum, point->sum.lanes);
      }
    }
  }

  HPO_PORTABLE static void AddTerm(const JointTerm& term, size_t row, Lanes& log_sum) {
    const JointAxis& axis = term.axis;
    if (axis.kernel == nullptr) {
      const Lanes z = (term.at - LoadLanes(axis.centre + row)) * LoadLanes(axis.inverse + row);
      log_sum -= z * z * 0.5 + LoadLanes(axis.log_norm + row);
      return;
    }
    const uint32_t* kernel = axis.kernel + row;
    const double* table = term.table;
    log_sum += Lanes{table[kernel[0]], table[kernel[1]], table[kernel[2]], table[kernel[3]],
                     table[kernel[4]], table[kernel[5]], table[kernel[6]], table[kernel[7]]};
  }

  // A block of components: weights, and -infinity in the logarithms of those that there are not.
  struct Block {
    size_t first;
    Lanes weights[kVectors];
    Lanes logs[kVectors];
  };

  // Whether a component of a block is within the point's squares.
  HPO_PORTABLE static bool Reaches(size_t first, const JointPoint& point) {
    FloatLanes squares[kKernelBlock / kNumFloatLanes] = {};
    for (size_t i = 0; i < point.num_terms && point.terms[i].axis.kernel == nullptr; ++i) {
      const JointAxis& axis = point.terms[i].axis;
      const float at = static_cast<float>(point.terms[i].at);
      for (size_t v = 0; v < kKernelBlock / kNumFloatLanes; ++v) {
        const size_t row = first + v * kNumFloatLanes;
        const FloatLanes z = (at - LoadFloatLanes(axis.rough_centre + row)) *
                             LoadFloatLanes(axis.rough_inverse + row);
        squares[v] += z * z;
      }
    }
    FloatLanes least = squares[0];
    for (const FloatLanes& lanes : squares) least = lanes < least ? lanes : least;
    return static_cast<double>(Least(least)) <= point.most_squares;
  }

  static void AddBlock(const Block& block, JointPoint& point) {
    if (!Reaches(block.first, point)) return;
    Lanes logs[kVectors];
    for (size_t v = 0; v < kVectors; ++v) logs[v] = block.logs[v];
    double largest = 0.0;
    for (size_t i = 0; i < point.num_terms; ++i) {
      const JointTerm& term = point.terms[i];
      Lanes most = Lanes{} - kUnbounded;
      for (size_t v = 0; v < kVectors; ++v) {
        AddTerm(term, block.first + v * kWidth, logs[v]);
        most = Larger(most, logs[v]);
      }
      largest = Largest(most);
      if (largest < term.limit) return;
    }
    Lanes sum = LoadLanes(point.sum.lanes);
    if (largest > point.reference) {
      sum *= Exp(point.reference - largest);
      point.reference = largest;
    }
    for (size_t v = 0; v < kVectors; ++v) sum += block.weights[v] * Exp(logs[v] - point.reference);
    StoreLanes(sum, point.sum.lanes);
  }

  static void SumJoint(size_t num_components, const RecencyRamp& ramp, JointPoint* points,
                       size_t num_points) {
    for (size_t first = 0; first < num_components; first += kKernelBlock) {
      Block block{first, {}, {}};
      for (size_t v = 0; v < kVectors; ++v) {
        const Lanes rank = kRanks + static_cast<double>(first + v * kWidth);
        const auto is_component = rank < static_cast<double>(num_components);
        block.weights[v] = is_component ? WeightsOf(ramp, rank) : Lanes{};
        block.logs[v] = is_component ? Lanes{} : Lanes{} - kUnbounded;
      }
      for (size_t i = 0; i < num_points; ++i) AddBlock(block, points[i]);
    }
  }

  // Mass of the standard normal distribution between a < b, as truncated_normal.h's LogNormalMass.
  HPO_PORTABLE static Lanes NormalMasses(const Lanes& a, const Lanes& b) {
    constexpr double kSqrtHalf = 0.70710678118654752440;
    constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
    const auto mirrored = a > 0.0;
    const Lanes low = mirrored ? -b : a;
    const Lanes high = mirrored ? -a : b;
    const Lanes below = Erfc(low * -kSqrtHalf) * 0.5;
    const auto right = high > 0.0;
    const Lanes beyond = Erfc((right ? high : -high) * kSqrtHalf) * 0.5;
    const Lanes wide = right ? (1.0 - below) - beyond : beyond - below;
    const Lanes width = high - low;
    const Lanes middle = (low + high) * 0.5;
    const Lanes square = middle * middle;
    const Lanes narrow = Exp(square * -0.5) * (width * kInverseSqrtTwoPi) *
                         ((square - 1.0) * width * width / 24.0 + 1.0);
    return width * ((middle < 0.0 ? -middle : middle) + 1.0) < 1e-3 ? narrow : wide;
  }

  static void CellMasses(const GridKernels& kernels, double low, double high, double* masses,
                         double* logs) {
    for (size_t i = 0; i < kernels.size; i += kWidth) {
      const Lanes centre = LoadLanes(kernels.centre + i);
      const Lanes inverse = LoadLanes(kernels.inverse + i);
      const Lanes mass = NormalMasses((low - centre) * inverse, (high - centre) * inverse) *
                         LoadLanes(kernels.scale + i);
      StoreLanes(mass, masses + i);
      StoreLanes(Log(mass), logs + i);
    }
  }

  static constexpr KernelLoops kLoops = {&FoldRuns, &SumMarginal, &SumJoint, &CellMasses};
};

}  // namespace hpo
