#include "sampler/tpe/kernel_sums.h"

#include <bit>

#include "sampler/tpe/kernel_loops.h"

namespace hpo::sampler {

// In files that are compiled for these processors.
const KernelLoops* Avx2Loops();
const KernelLoops* Avx512Loops();

namespace {

const KernelLoops& BestLoops() {
  static const KernelLoops& best = BestOf(LoopsOf);
  return best;
}

}  // namespace

RecencyRamp RecencyRamp::Of(size_t num_observations) {
  constexpr size_t kFullWeights = 25;
  if (num_observations <= kFullWeights) return {};
  const double first = 1.0 / static_cast<double>(num_observations);
  const size_t steps = std::max<size_t>(num_observations - kFullWeights - 1, 1);
  return {first, (1.0 - first) / static_cast<double>(steps)};
}

const KernelLoops* LoopsOf(SimdPath path) {
  return OfPath(path, KernelLoopsOn<SimdPath::kBaseline>::kLoops, Avx2Loops, Avx512Loops);
}

size_t RunLength(size_t num_kernels) {
  constexpr size_t kFewestRuns = 512;
  return std::bit_floor(num_kernels / kFewestRuns) & ~size_t{7};
}

std::vector<FoldedRuns> FoldRuns(const SortedKernels& kernels, double least,
                                 const RecencyRamp& ramp) {
  std::vector<FoldedRuns> folds(kernels.run > 0 ? kernels.size / (kNumLanes * kernels.run) : 0);
  BestLoops().fold_runs(kernels, least, ramp, folds.data(), folds.size());
  return folds;
}

void FitBandwidths(const PaddedColumn<double>& at, double least, PaddedColumn<double>& bandwidths,
                   std::span<double> widest) {
  BestLoops().fit_bandwidths(at.data(), at.size(), least, bandwidths.data(), widest.data());
}

double SumWeights(const PaddedColumn<double>& rank, const RecencyRamp& ramp) {
  LaneSums sum;
  BestLoops().sum_weights(rank.data(), rank.size(), ramp, sum);
  return sum.Total();
}

void ShiftFrom(double from, double by, PaddedColumn<double>& values) {
  BestLoops().shift_from(from, by, values.data(), values.size());
}

std::vector<BlockBounds> BoundBlocks(const PaddedColumn<double>& centre,
                                     const PaddedColumn<double>& inverse) {
  std::vector<BlockBounds> bounds(NumBlocks(centre.size()));
  BestLoops().bound_blocks(centre.data(), inverse.data(), centre.size(), bounds.data());
  return bounds;
}

void SumMarginal(const SortedKernels& kernels, const RecencyRamp& ramp, double reach,
                 std::span<MarginalPoint> points) {
  BestLoops().sum_marginal(kernels, ramp, reach, points.data(), points.size());
}

void SumJoint(const PaddedColumn<double>& rank, const RecencyRamp& ramp,
              std::span<JointPoint> points) {
  BestLoops().sum_joint(rank.data(), rank.size(), ramp, points.data(), points.size());
}

void CellMasses(const GridKernels& kernels, double low, double high, double* masses, double* logs) {
  BestLoops().cell_masses(kernels, low, high, masses, logs);
}

}  // namespace hpo::sampler
