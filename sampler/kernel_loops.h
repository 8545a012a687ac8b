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

  static size_t SizeOfBlock(size_t first, size_t num_kernels) {
    return num_kernels - first < kKernelBlock ? num_kernels - first : kKernelBlock;
  }

  static void SumMarginal(const SortedKernels& kernels, const RecencyRamp& ramp, double reach,
                          MarginalPoint* points, size_t num_points) {
    for (size_t first = 0; first < kernels.size; first += kKernelBlock) {
      const size_t size = SizeOfBlock(first, kernels.size);
      const double near = reach * kernels.widest[first / kKernelBlock];
      const double low = kernels.centre[first] - near;
      const double high = kernels.centre[first + size - 1] + near;
      for (MarginalPoint* point = points; point < points + num_points; ++point) {
        if (point->at < low || point->at > high) continue;
        Lanes sum = LoadLanes(point->sum.lanes);
        for (size_t i = first; i < first + size; i += kWidth) {
          const Lanes z =
              (point->at - LoadLanes(kernels.centre + i)) * LoadLanes(kernels.inverse + i);
          const Lanes weight =
              WeightsOf(ramp, LoadLanes(kernels.rank + i)) * LoadLanes(kernels.scale + i);
          sum += weight * Exp(z * z * -0.5);  // 0 after the last
        }
        StoreLanes(sum, point->sum.lanes);
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

  static constexpr KernelLoops kLoops = {&SumMarginal, &SumJoint, &CellMasses};
};

}  // namespace hpo
