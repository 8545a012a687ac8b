// The loops of kernel_sums.h, to be compiled once for each kind of processor: included by
// kernel_sums.cc and kernel_sums_<path>.cc alone. They call nothing of a library: what is inline
// there would be compiled for the one processor and linked into code for another.
#pragma once

#include "sampler/numeric/portable_math.h"
#include "sampler/tpe/kernel_sums.h"

namespace hpo::sampler {

// `kPath` keeps the functions of different files apart.
template <SimdPath kPath>
class KernelLoopsOn {
  static constexpr size_t kWidth = kNumLanes;
  static constexpr size_t kVectors = kKernelBlock / kWidth;
  static constexpr Lanes kRanks = {0, 1, 2, 3, 4, 5, 6, 7};

  HPO_PORTABLE static Lanes WeightsOf(const RecencyRamp& ramp, const Lanes& rank) {
    const Lanes weight = rank * ramp.slope + ramp.first;
    return weight < 1.0 ? weight : Lanes{} + 1.0;
  }

  HPO_PORTABLE static Lanes Larger(const Lanes& a, const Lanes& b) { return a > b ? a : b; }

  HPO_PORTABLE static double Largest(const Lanes& lanes) {
    const Lanes four = Larger(lanes, __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3));
    const Lanes two = Larger(four, __builtin_shufflevector(four, four, 2, 3, 0, 1, 6, 7, 4, 5));
    return two[0] > two[1] ? two[0] : two[1];
  }

  HPO_PORTABLE static double TotalOf(const Lanes& lanes) {
    const Lanes four = lanes + __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7, 0, 1, 2, 3);
    const Lanes two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1, 6, 7, 4, 5);
    return two[0] + two[1];
  }

  HPO_PORTABLE static double Smallest(const Lanes& lanes) { return -Largest(-lanes); }

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
    for (size_t k = 0; k < kMoments; ++k) fold.moments[k][lane] = TotalOf(moments[k]);
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
    return sum * ExpDown(z * z * -0.5);
  }

  // A block of sorted kernels; what follows the last has no height.
  struct SortedBlock {
    size_t num_vectors;
    Lanes centre[kVectors];
    Lanes inverse[kVectors];
    Lanes height[kVectors];
  };

  HPO_PORTABLE static SortedBlock LoadBlock(const SortedKernels& kernels, const RecencyRamp& ramp,
                                            size_t first, size_t size) {
    SortedBlock block;
    block.num_vectors = (size + kWidth - 1) / kWidth;
    for (size_t v = 0; v < block.num_vectors; ++v) {
      const size_t i = first + v * kWidth;
      block.centre[v] = LoadLanes(kernels.centre + i);
      block.inverse[v] = LoadLanes(kernels.inverse + i);
      block.height[v] = WeightsOf(ramp, LoadLanes(kernels.rank + i)) * LoadLanes(kernels.scale + i);
    }
    return block;
  }

  HPO_PORTABLE static Lanes SumOfBlock(const SortedBlock& block, double at) {
    Lanes sum = {};
    for (size_t v = 0; v < block.num_vectors; ++v) {
      const Lanes z = (at - block.centre[v]) * block.inverse[v];
      sum += block.height[v] * ExpDown(z * z * -0.5);
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
      const SortedBlock block = LoadBlock(kernels, ramp, first, folded ? 0 : size);
      for (MarginalPoint* point = points; point < points + num_points; ++point) {
        if (point->at < low || point->at > high) continue;
        const Lanes sum = folded ? SumOfRuns(*fold, point->at) : SumOfBlock(block, point->at);
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

  // Eight points on the axes of normal kernels, to be held against the bounds of a block side by
  // side. What a point lacks is NaN, which is outside of nothing.
  struct PointGroup {
    static constexpr size_t kMostAxes = 16;  // more would say little more
    size_t num_axes = 0;
    const BlockBounds* bounds[kMostAxes];
    Lanes at[kMostAxes];
    Lanes most_squares = Lanes{} - kUnbounded;
  };

  static PointGroup GroupOf(const JointPoint* points, size_t num_points) {
    PointGroup group;
    for (size_t lane = 0; lane < num_points; ++lane) {
      const JointPoint& point = points[lane];
      group.most_squares[lane] = point.most_squares;
      for (size_t i = 0; i < point.num_terms && point.terms[i].axis.kernel == nullptr; ++i) {
        const JointTerm& term = point.terms[i];
        size_t axis = 0;
        while (axis < group.num_axes && group.bounds[axis] != term.axis.bounds) ++axis;
        if (axis == PointGroup::kMostAxes) break;
        if (axis == group.num_axes) {
          group.bounds[axis] = term.axis.bounds;
          group.at[axis] = Lanes{} + kNoNumber;
          ++group.num_axes;
        }
        group.at[axis][lane] = term.at;
      }
    }
    return group;
  }

  // Negative where a component of the block may be within the point's squares.
  HPO_PORTABLE static Lanes Beyond(const PointGroup& group, size_t first) {
    Lanes squares = {};
    for (size_t axis = 0; axis < group.num_axes; ++axis) {
      const BlockBounds& bounds = group.bounds[axis][first / kKernelBlock];
      const Lanes outside = Larger(bounds.low - group.at[axis], group.at[axis] - bounds.high);
      const Lanes z = outside > 0.0 ? outside * bounds.inverse : Lanes{};
      squares += z * z;
    }
    return squares <= group.most_squares ? Lanes{} - 1.0 : Lanes{} + 1.0;
  }

  static void AddBlock(const Block& block, JointPoint& point) {
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
      sum *= ExpDown(point.reference - largest);
      point.reference = largest;
    }
    for (size_t v = 0; v < kVectors; ++v)
      sum += block.weights[v] * ExpDown(logs[v] - point.reference);
    StoreLanes(sum, point.sum.lanes);
  }

  HPO_PORTABLE static Block MakeBlock(size_t first, const double* rank, size_t num_components,
                                      const RecencyRamp& ramp) {
    Block block{first, {}, {}};
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t row = first + v * kWidth;
      const auto is_component =
          kRanks + static_cast<double>(row) < static_cast<double>(num_components);
      block.weights[v] = is_component ? WeightsOf(ramp, LoadLanes(rank + row)) : Lanes{};
      block.logs[v] = is_component ? Lanes{} : Lanes{} - kUnbounded;
    }
    return block;
  }

  static void SumJoint(const double* rank, size_t num_components, const RecencyRamp& ramp,
                       JointPoint* points, size_t num_points) {
    for (size_t from = 0; from < num_points; from += kWidth) {
      const size_t count = num_points - from < kWidth ? num_points - from : kWidth;
      const PointGroup group = GroupOf(points + from, count);
      for (size_t first = 0; first < num_components; first += kKernelBlock) {
        const Lanes beyond = Beyond(group, first);
        if (Smallest(beyond) > 0.0) continue;
        const Block block = MakeBlock(first, rank, num_components, ramp);
        for (size_t lane = 0; lane < count; ++lane) {
          if (beyond[lane] < 0.0) AddBlock(block, points[from + lane]);
        }
      }
    }
  }

  static void FitBandwidths(const double* at, size_t size, double least, double* bandwidths,
                            double* widest) {
    for (size_t first = 0; first < size; first += kKernelBlock) {
      Lanes most = {};
      for (size_t i = first; i < first + kKernelBlock && i < size; i += kWidth) {
        const Lanes here = LoadLanes(at + i);
        // The first has none before it; what follows the last is 0.
        const Lanes before = i > 0 ? LoadLanes(at + i - 1)
                                   : Lanes{at[0], at[0], at[1], at[2], at[3], at[4], at[5], at[6]};
        const Lanes gap = Larger(here - before, LoadLanes(at + i + 1) - here);
        const Lanes enough = Larger(gap, Lanes{} + least);
        const Lanes bandwidth = enough < 1.0 ? enough : Lanes{} + 1.0;
        StoreLanes(bandwidth, bandwidths + i);
        most = Larger(most, bandwidth);
      }
      widest[first / kKernelBlock] = Largest(most);
    }
  }

  static void SumWeights(const double* rank, size_t size, const RecencyRamp& ramp,
                         LaneSums& total) {
    const size_t whole = size - size % kWidth;
    Lanes sum = {};
    for (size_t i = 0; i < whole; i += kWidth) sum += WeightsOf(ramp, LoadLanes(rank + i));
    const auto is_there = kRanks + static_cast<double>(whole) < static_cast<double>(size);
    sum += is_there ? WeightsOf(ramp, LoadLanes(rank + whole)) : Lanes{};
    StoreLanes(sum, total.lanes);
  }

  static void ShiftFrom(double from, double by, double* values, size_t size) {
    const size_t whole = size - size % kWidth;
    for (size_t i = 0; i < whole; i += kWidth) {
      const Lanes value = LoadLanes(values + i);
      StoreLanes(value + (value >= from ? Lanes{} + by : Lanes{}), values + i);
    }
    for (size_t i = whole; i < size; ++i) values[i] += values[i] >= from ? by : 0.0;
  }

  HPO_PORTABLE static BlockBounds BoundsOf(const double* centre, const double* inverse) {
    Lanes low = LoadLanes(centre);
    Lanes high = low;
    Lanes least = LoadLanes(inverse);
    for (size_t i = kWidth; i < kKernelBlock; i += kWidth) {
      const Lanes here = LoadLanes(centre + i);
      low = here < low ? here : low;
      high = Larger(here, high);
      const Lanes factor = LoadLanes(inverse + i);
      least = factor < least ? factor : least;
    }
    return {Smallest(low), Largest(high), Smallest(least)};
  }

  static void BoundBlocks(const double* centre, const double* inverse, size_t size,
                          BlockBounds* bounds) {
    const size_t whole = size - size % kKernelBlock;
    for (size_t first = 0; first < whole; first += kKernelBlock) {
      bounds[first / kKernelBlock] = BoundsOf(centre + first, inverse + first);
    }
    if (whole == size) return;
    double centres[kKernelBlock];
    double inverses[kKernelBlock];
    for (size_t i = 0; i < kKernelBlock; ++i) {
      const size_t from = whole + i < size ? whole + i : whole;
      centres[i] = centre[from];
      inverses[i] = inverse[from];
    }
    bounds[whole / kKernelBlock] = BoundsOf(centres, inverses);
  }

  HPO_PORTABLE static Lanes MassesOfWide(const Lanes& a, const Lanes& b) {
    constexpr double kSqrtHalf = 0.70710678118654752440;
    const auto mirrored = a > 0.0;
    const Lanes low = mirrored ? -b : a;
    const Lanes high = mirrored ? -a : b;
    const Lanes below = Erfc(low * -kSqrtHalf) * 0.5;
    const auto right = high > 0.0;
    const Lanes beyond = Erfc((right ? high : -high) * kSqrtHalf) * 0.5;
    return right ? (1.0 - below) - beyond : beyond - below;
  }

  // The density's Taylor series around the middle, whose even derivatives are Hermite's polynomials
  // times the density, integrated: what follows the tenth is below 1e-13 of the mass.
  HPO_PORTABLE static Lanes MassesOfNarrow(const Lanes& width, const Lanes& middle) {
    constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
    const Lanes s = middle * middle;
    const Lanes w = width * width * 0.25;
    const Lanes h2 = s - 1.0;
    const Lanes h4 = (s - 6.0) * s + 3.0;
    const Lanes h6 = ((s - 15.0) * s + 45.0) * s - 15.0;
    const Lanes h8 = (((s - 28.0) * s + 210.0) * s - 420.0) * s + 105.0;
    const Lanes h10 = ((((s - 45.0) * s + 630.0) * s - 3150.0) * s + 4725.0) * s - 945.0;
    Lanes sum = w * h10 * (1.0 / 39916800.0) + h8 * (1.0 / 362880.0);
    sum = sum * w + h6 * (1.0 / 5040.0);
    sum = sum * w + h4 * (1.0 / 120.0);
    sum = sum * w + h2 * (1.0 / 6.0);
    return ExpDown(s * -0.5) * (width * kInverseSqrtTwoPi) * (sum * w + 1.0);
  }

  // Mass of the standard normal distribution between a < b, as truncated_normal.h's LogNormalMass.
  HPO_PORTABLE static Lanes NormalMasses(const Lanes& a, const Lanes& b) {
    constexpr double kNarrow = 0.5;
    const Lanes width = b - a;
    const Lanes middle = (a + b) * 0.5;
    const Lanes extent = width * ((middle < 0.0 ? -middle : middle) + 1.0);
    if (Largest(extent) < kNarrow) return MassesOfNarrow(width, middle);
    const Lanes wide = MassesOfWide(a, b);
    if (Smallest(extent) >= kNarrow) return wide;
    return extent < kNarrow ? MassesOfNarrow(width, middle) : wide;
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

 public:
  static constexpr KernelLoops kLoops = {&FoldRuns,      &SumMarginal, &SumJoint,  &CellMasses,
                                         &FitBandwidths, &SumWeights,  &ShiftFrom, &BoundBlocks};
};

}  // namespace hpo::sampler
