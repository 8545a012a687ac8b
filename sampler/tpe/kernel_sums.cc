#include "sampler/tpe/kernel_sums.h"

#include <bit>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// The widest that a run may be to fold, in bandwidths.
constexpr double kWidestRun = 0.4;

bool FoldRun(const SortedKernels& kernels, const RecencyRamp& ramp, size_t first, size_t lane,
             FoldedRuns& fold) {
  constexpr size_t kMoments = FoldedRuns::kNumMoments;
  const double low = kernels.centre[first];
  const double high = kernels.centre[first + kernels.run - 1];
  if ((high - low) * fold.inverse > kWidestRun) return false;
  fold.middle[lane] = low + (high - low) * 0.5;
  Lanes moments[kMoments];
  for (Lanes& moment : moments) moment = 0.0;
  for (size_t i = first; i < first + kernels.run; i += kNumLanes) {
    const Lanes distance = (LoadLanes(kernels.centre + i) - fold.middle[lane]) * fold.inverse;
    Lanes moment = ramp.Weights(LoadLanes(kernels.rank + i)) * LoadLanes(kernels.scale + i);
    moments[0] += moment;
    for (size_t k = 1; k < kMoments; ++k) {
      moment *= distance * (1.0 / static_cast<double>(k));
      moments[k] += moment;
    }
  }
  for (size_t k = 0; k < kMoments; ++k) fold.moments[k][lane] = TotalOf(moments[k]);
  return true;
}

HPO_PORTABLE Lanes SumOfRuns(const FoldedRuns& fold, double at) {
  const Lanes z = (at - LoadLanes(fold.middle)) * fold.inverse;
  Lanes before = 1.0;
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
  Lanes centre[kVectorsOfBlock];
  Lanes inverse[kVectorsOfBlock];
  Lanes height[kVectorsOfBlock];
};

HPO_PORTABLE SortedBlock LoadBlock(const SortedKernels& kernels, const RecencyRamp& ramp,
                                   size_t first, size_t size) {
  SortedBlock block;
  block.num_vectors = (size + kNumLanes - 1) / kNumLanes;
  for (size_t v = 0; v < block.num_vectors; ++v) {
    const size_t i = first + v * kNumLanes;
    block.centre[v] = LoadLanes(kernels.centre + i);
    block.inverse[v] = LoadLanes(kernels.inverse + i);
    block.height[v] = ramp.Weights(LoadLanes(kernels.rank + i)) * LoadLanes(kernels.scale + i);
  }
  return block;
}

HPO_PORTABLE Lanes SumOfBlock(const SortedBlock& block, double at) {
  Lanes sum = 0.0;
  for (size_t v = 0; v < block.num_vectors; ++v) {
    const Lanes z = (at - block.centre[v]) * block.inverse[v];
    sum += block.height[v] * ExpDown(z * z * -0.5);
  }
  return sum;
}

HPO_PORTABLE void AddTerm(const JointTerm& term, size_t row, Lanes& log_sum) {
  const JointAxis& axis = term.axis;
  if (axis.kernel == nullptr) {
    const Lanes z = (term.at - LoadLanes(axis.centre + row)) * LoadLanes(axis.inverse + row);
    log_sum -= z * z * 0.5 + LoadLanes(axis.log_norm + row);
    return;
  }
  const uint32_t* kernel = axis.kernel + row;
  const double* table = term.table;
  const auto pair = [&](int i) { return TwoLanes{table[kernel[i]], table[kernel[i + 1]]}; };
  log_sum += Lanes(pair(0), pair(2), pair(4), pair(6));
}

// A block of components: weights, and -infinity in the logarithms of those that there are not.
struct Block {
  size_t first;
  Lanes weights[kVectorsOfBlock];
  Lanes logs[kVectorsOfBlock];
};

// Eight points on the axes of normal kernels, to be held against the bounds of a block side by
// side. What a point lacks is NaN, which is outside of nothing.
struct PointGroup {
  static constexpr size_t kMostAxes = 16;  // more would say little more
  size_t num_axes = 0;
  const BlockBounds* bounds[kMostAxes];
  double at[kMostAxes][kNumLanes];
  double most_squares[kNumLanes];
};

PointGroup GroupOf(std::span<const JointPoint> points) {
  PointGroup group;
  StoreLanes(-kUnbounded, group.most_squares);
  for (size_t lane = 0; lane < points.size(); ++lane) {
    const JointPoint& point = points[lane];
    group.most_squares[lane] = point.most_squares;
    for (size_t i = 0; i < point.num_terms && point.terms[i].axis.kernel == nullptr; ++i) {
      const JointTerm& term = point.terms[i];
      size_t axis = 0;
      while (axis < group.num_axes && group.bounds[axis] != term.axis.bounds) ++axis;
      if (axis == PointGroup::kMostAxes) break;
      if (axis == group.num_axes) {
        group.bounds[axis] = term.axis.bounds;
        StoreLanes(kNoNumber, group.at[axis]);
        ++group.num_axes;
      }
      group.at[axis][lane] = term.at;
    }
  }
  return group;
}

// Negative where a component of the block may be within the point's squares.
HPO_PORTABLE Lanes Beyond(const PointGroup& group, size_t first) {
  Lanes squares = 0.0;
  for (size_t axis = 0; axis < group.num_axes; ++axis) {
    const BlockBounds& bounds = group.bounds[axis][first / kKernelBlock];
    const Lanes at = LoadLanes(group.at[axis]);
    const Lanes outside = Larger(bounds.low - at, at - bounds.high);
    const Lanes z = Where(0.0 < outside, outside * bounds.inverse, 0.0);
    squares += z * z;
  }
  return Where(squares <= LoadLanes(group.most_squares), -1.0, 1.0);
}

void AddBlock(const Block& block, JointPoint& point) {
  Lanes logs[kVectorsOfBlock];
  for (size_t v = 0; v < kVectorsOfBlock; ++v) logs[v] = block.logs[v];
  double largest = 0.0;
  for (size_t i = 0; i < point.num_terms; ++i) {
    const JointTerm& term = point.terms[i];
    Lanes most = -kUnbounded;
    for (size_t v = 0; v < kVectorsOfBlock; ++v) {
      AddTerm(term, block.first + v * kNumLanes, logs[v]);
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
  for (size_t v = 0; v < kVectorsOfBlock; ++v)
    sum += block.weights[v] * ExpDown(logs[v] - point.reference);
  StoreLanes(sum, point.sum.lanes);
}

HPO_PORTABLE Block MakeBlock(size_t first, const PaddedColumn<double>& rank,
                             const RecencyRamp& ramp) {
  Block block{first, {}, {}};
  for (size_t v = 0; v < kVectorsOfBlock; ++v) {
    const size_t row = first + v * kNumLanes;
    const LaneMask is_component = AreBelow(row, rank.size());
    block.weights[v] = Where(is_component, ramp.Weights(LoadLanes(rank.data() + row)), 0.0);
    block.logs[v] = Where(is_component, 0.0, -kUnbounded);
  }
  return block;
}

HPO_PORTABLE BlockBounds BoundsOf(const double* centre, const double* inverse) {
  Lanes low = LoadLanes(centre);
  Lanes high = low;
  Lanes least = LoadLanes(inverse);
  for (size_t i = kNumLanes; i < kKernelBlock; i += kNumLanes) {
    const Lanes here = LoadLanes(centre + i);
    low = Smaller(here, low);
    high = Larger(here, high);
    least = Smaller(LoadLanes(inverse + i), least);
  }
  return {Smallest(low), Largest(high), Smallest(least)};
}

}  // namespace

RecencyRamp RecencyRamp::Of(size_t num_observations) {
  constexpr size_t kFullWeights = 25;
  if (num_observations <= kFullWeights) return {};
  const double first = 1.0 / static_cast<double>(num_observations);
  const size_t steps = std::max<size_t>(num_observations - kFullWeights - 1, 1);
  return {first, (1.0 - first) / static_cast<double>(steps)};
}

size_t RunLength(size_t num_kernels) {
  constexpr size_t kFewestRuns = 512;
  return std::bit_floor(num_kernels / kFewestRuns) & ~size_t{7};
}

std::vector<FoldedRuns> FoldRuns(const SortedKernels& kernels, double least,
                                 const RecencyRamp& ramp) {
  const size_t size = kNumLanes * kernels.run;
  std::vector<FoldedRuns> folds(size > 0 ? kernels.size / size : 0);
  for (size_t f = 0; f < folds.size(); ++f) {
    const size_t first = f * size;
    FoldedRuns& fold = folds[f];
    fold.inverse = 1.0 / least;
    fold.folded = true;
    for (size_t i = first; i < first + size; i += kKernelBlock) {
      fold.folded = fold.folded && kernels.widest[i / kKernelBlock] == least;
    }
    for (size_t lane = 0; lane < kNumLanes && fold.folded; ++lane) {
      fold.folded = FoldRun(kernels, ramp, first + lane * kernels.run, lane, fold);
    }
  }
  return folds;
}

void FitBandwidths(const PaddedColumn<double>& column, double least,
                   PaddedColumn<double>& bandwidths, std::span<double> widest) {
  const double* const at = column.data();
  const size_t size = column.size();
  // The first has none before it; what follows the last is 0.
  const double first_before[] = {at[0], at[0], at[1], at[2], at[3], at[4], at[5], at[6]};
  for (size_t first = 0; first < size; first += kKernelBlock) {
    Lanes most = 0.0;
    for (size_t i = first; i < first + kKernelBlock && i < size; i += kNumLanes) {
      const Lanes here = LoadLanes(at + i);
      const Lanes before = LoadLanes(i > 0 ? at + i - 1 : first_before);
      const Lanes gap = Larger(here - before, LoadLanes(at + i + 1) - here);
      const Lanes bandwidth = Smaller(Larger(gap, least), 1.0);
      StoreLanes(bandwidth, bandwidths.data() + i);
      most = Larger(most, bandwidth);
    }
    widest[first / kKernelBlock] = Largest(most);
  }
}

double SumWeights(const PaddedColumn<double>& rank, const RecencyRamp& ramp) {
  const size_t size = rank.size();
  const size_t whole = size - size % kNumLanes;
  Lanes sum = 0.0;
  for (size_t i = 0; i < whole; i += kNumLanes) sum += ramp.Weights(LoadLanes(rank.data() + i));
  sum += Where(AreBelow(whole, size), ramp.Weights(LoadLanes(rank.data() + whole)), 0.0);
  LaneSums total;
  StoreLanes(sum, total.lanes);
  return total.Total();
}

void ShiftFrom(double from, double by, PaddedColumn<double>& column) {
  double* const values = column.data();
  const size_t size = column.size();
  const size_t whole = size - size % kNumLanes;
  for (size_t i = 0; i < whole; i += kNumLanes) {
    const Lanes value = LoadLanes(values + i);
    StoreLanes(value + Where(from <= value, by, 0.0), values + i);
  }
  for (size_t i = whole; i < size; ++i) values[i] += values[i] >= from ? by : 0.0;
}

void SumMarginal(const SortedKernels& kernels, const RecencyRamp& ramp, double reach,
                 std::span<MarginalPoint> points) {
  const size_t folded_size = kNumLanes * kernels.run;
  const size_t folds_end = folded_size * kernels.num_folds;
  for (size_t first = 0, size = 0; first < kernels.size; first += size) {
    const bool at_fold = first < folds_end && first % folded_size == 0;
    const FoldedRuns* fold = at_fold ? kernels.folds + first / folded_size : nullptr;
    const bool folded = at_fold && fold->folded;
    size = folded ? folded_size : std::min(kKernelBlock, kernels.size - first);
    const double near = reach * kernels.widest[first / kKernelBlock];
    const double low = kernels.centre[first] - near;
    const double high = kernels.centre[first + size - 1] + near;
    const SortedBlock block = LoadBlock(kernels, ramp, first, folded ? 0 : size);
    for (MarginalPoint& point : points) {
      if (point.at < low || point.at > high) continue;
      const Lanes sum = folded ? SumOfRuns(*fold, point.at) : SumOfBlock(block, point.at);
      StoreLanes(LoadLanes(point.sum.lanes) + sum, point.sum.lanes);
    }
  }
}

std::vector<BlockBounds> BoundBlocks(const PaddedColumn<double>& centre,
                                     const PaddedColumn<double>& inverse) {
  const size_t size = centre.size();
  const size_t whole = size - size % kKernelBlock;
  std::vector<BlockBounds> bounds;
  bounds.reserve(NumBlocks(size));
  for (size_t first = 0; first < whole; first += kKernelBlock) {
    bounds.push_back(BoundsOf(centre.data() + first, inverse.data() + first));
  }
  if (whole == size) return bounds;
  double centres[kKernelBlock];
  double inverses[kKernelBlock];
  for (size_t i = 0; i < kKernelBlock; ++i) {
    const size_t from = whole + i < size ? whole + i : whole;
    centres[i] = centre[from];
    inverses[i] = inverse[from];
  }
  bounds.push_back(BoundsOf(centres, inverses));
  return bounds;
}

void SumJoint(const PaddedColumn<double>& rank, const RecencyRamp& ramp,
              std::span<JointPoint> points) {
  for (size_t from = 0; from < points.size(); from += kNumLanes) {
    const size_t count = std::min(kNumLanes, points.size() - from);
    const PointGroup group = GroupOf(points.subspan(from, count));
    for (size_t first = 0; first < rank.size(); first += kKernelBlock) {
      double beyond[kNumLanes];
      StoreLanes(Beyond(group, first), beyond);
      if (Smallest(LoadLanes(beyond)) > 0.0) continue;
      const Block block = MakeBlock(first, rank, ramp);
      for (size_t lane = 0; lane < count; ++lane) {
        if (beyond[lane] < 0.0) AddBlock(block, points[from + lane]);
      }
    }
  }
}

}  // namespace hpo::sampler
