// The columns of a Parzen density's kernels, and its inner loops: sums over many kernels for a few
// points, vectorised by hand (lanes.h). Lanes are added up in one order.
// Pure; safe from any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sampler/numeric/lanes.h"

namespace hpo::sampler {

// Kernels are taken in blocks of so many. Arrays that the loops read are readable up to a multiple
// of it: a PaddedColumn is.
constexpr size_t kKernelBlock = 32;
constexpr size_t kVectorsOfBlock = kKernelBlock / kNumLanes;
constexpr size_t NumBlocks(size_t kernels) { return (kernels + kKernelBlock - 1) / kKernelBlock; }

// The values at these indices.
template <typename T>
std::vector<T> Permuted(const std::vector<T>& values, std::span<const uint32_t> order) {
  std::vector<T> permuted;
  permuted.reserve(values.size());
  for (const uint32_t i : order) permuted.push_back(values[i]);
  return permuted;
}

// A column whose values are followed by a block of zeros.
template <typename T>
class PaddedColumn {
 public:
  PaddedColumn() : values_(kKernelBlock) {}
  bool operator==(const PaddedColumn&) const = default;
  size_t size() const { return values_.size() - kKernelBlock; }
  const T* data() const { return values_.data(); }
  T* data() { return values_.data(); }
  T& operator[](size_t i) { return values_[i]; }
  const T& operator[](size_t i) const { return values_[i]; }
  void Insert(size_t i, const T& value) { values_.insert(At(i), value); }
  void Erase(size_t i) { values_.erase(At(i)); }
  // Takes the value at `from` to `to`, which comes before it.
  void Move(size_t from, size_t to) { std::rotate(At(to), At(from), At(from + 1)); }
  void Clear() { values_.assign(kKernelBlock, T{}); }
  void Resize(size_t size) { values_.resize(size + kKernelBlock); }
  void Permute(std::span<const uint32_t> order) {
    values_ = Permuted(values_, order);
    values_.resize(order.size() + kKernelBlock);
  }

 private:
  auto At(size_t i) { return values_.begin() + static_cast<std::ptrdiff_t>(i); }

  std::vector<T> values_;
};

// Weight of the observation of a rank, the oldest has 0: 1 for the newest 25, and below them on a
// ramp that starts at 1/n.
struct RecencyRamp {
  double first = 1.0;
  double slope = 0.0;

  static RecencyRamp Of(size_t num_observations);
  // For weights of at most 1 in the place of ranks.
  static RecencyRamp OfWeights() { return {0.0, 1.0}; }
  double Weight(double rank) const {
    const double weight = first + slope * rank;
    return weight < 1.0 ? weight : 1.0;
  }
  HPO_PORTABLE Lanes Weights(const Lanes& ranks) const {
    return Smaller(ranks * slope + first, 1.0);
  }
};

// For each lane, whether the index `first` + lane is below `size`.
HPO_PORTABLE LaneMask AreBelow(size_t first, size_t size) {
  constexpr double kLanes[] = {0, 1, 2, 3, 4, 5, 6, 7};
  return LoadLanes(kLanes) + static_cast<double>(first) < static_cast<double>(size);
}

// What a sum over kernels comes to, before its lanes are added up.
struct LaneSums {
  double lanes[8] = {};
  double Total() const {
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
};

// Eight runs of kernels, each next to the last, of one bandwidth. A run is so narrow for it that
// its sum follows from its moments: a kernel at distance d from the middle, z from the point, both
// in bandwidths, is exp(-z^2/2) times the sum of d^k / k! He_k(z), with Hermite's polynomials. What
// is left out of it beyond the seventh power is below 1e-7 of a kernel's height.
struct FoldedRuns {
  static constexpr size_t kNumMoments = 8;
  bool folded = false;  // else they are taken kernel by kernel
  double inverse = 0.0;
  double middle[8] = {};
  double moments[kNumMoments][8] = {};  // of weight * scale
  bool operator==(const FoldedRuns&) const = default;
};

// Normal kernels on one axis, in the order of their centres.
struct SortedKernels {
  size_t size = 0;
  const double* centre;
  const double* inverse;  // of the bandwidth
  const double* scale;    // height of the kernel at its centre
  const double* rank;
  // By block of kernels: the widest bandwidth.
  const double* widest;
  // Kernels in a run, a multiple of 8; and by eight runs what FoldRuns() made of them, the rest
  // after the last eight are taken kernel by kernel.
  size_t run = 0;
  const FoldedRuns* folds = nullptr;
  size_t num_folds = 0;
};

// How long runs should be among so many kernels: so many that a whole axis has 512 to 1,024 of
// them; 0 where that would be less than 8.
size_t RunLength(size_t num_kernels);

// Folds those runs of `kernels` that are narrow, and whose bandwidth is the `least`.
std::vector<FoldedRuns> FoldRuns(const SortedKernels& kernels, double least,
                                 const RecencyRamp& ramp);

// The bandwidths of two or more kernels at these positions, ascending: the larger gap to a
// neighbour, at least `least`, at most 1. `widest`: the largest of each block.
void FitBandwidths(const PaddedColumn<double>& at, double least, PaddedColumn<double>& bandwidths,
                   std::span<double> widest);

// Of the observations of these ranks.
double SumWeights(const PaddedColumn<double>& rank, const RecencyRamp& ramp);

// Adds `by` to what is `from` or more.
void ShiftFrom(double from, double by, PaddedColumn<double>& values);

// Where the density of SortedKernels is wanted.
struct MarginalPoint {
  double at = 0.0;
  LaneSums sum;  // out: of weight * kernel
};

// Kernels further from a point than `reach` bandwidths of the widest in their block are left out.
void SumMarginal(const SortedKernels& kernels, const RecencyRamp& ramp, double reach,
                 std::span<MarginalPoint> points);

// Where a block of normal kernels lies.
struct BlockBounds {
  double low = 0.0;  // of the centres
  double high = 0.0;
  double inverse = 0.0;  // of the widest
  bool operator==(const BlockBounds&) const = default;
};

std::vector<BlockBounds> BoundBlocks(const PaddedColumn<double>& centre,
                                     const PaddedColumn<double>& inverse);

// One axis of a mixture of products, by component: normal kernels, or indices into a table of
// kernels.
struct JointAxis {
  const double* centre = nullptr;
  const double* inverse = nullptr;
  // What the logarithm of the kernel's exponential is lessened by.
  const double* log_norm = nullptr;
  const BlockBounds* bounds = nullptr;
  const uint32_t* kernel = nullptr;  // of a tabled axis
};

// What an axis says of one point.
struct JointTerm {
  JointAxis axis;
  double at = 0.0;                // on an axis of normal kernels
  const double* table = nullptr;  // logarithm of each kernel at the point, on a tabled axis
  // A block all of whose components have a smaller sum of logarithms after this term is left out.
  double limit = -std::numeric_limits<double>::infinity();
};

struct JointPoint {
  const JointTerm* terms = nullptr;  // those of normal kernels first
  size_t num_terms = 0;
  // A block is left out whose bounds are further than this from the point: the sum of the squares
  // of the distances, in bandwidths, over the axes of normal kernels.
  double most_squares = std::numeric_limits<double>::infinity();
  // In: a logarithm near the result. Out: what `sum` is to be multiplied by, in logarithm.
  double reference = 0.0;
  LaneSums sum;  // out: of weight * product of kernels / exp(reference)
};

// Sums over components of these ranks. The closer together those of a block, the more is left out.
void SumJoint(const PaddedColumn<double>& rank, const RecencyRamp& ramp,
              std::span<JointPoint> points);

}  // namespace hpo::sampler
