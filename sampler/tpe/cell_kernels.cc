#include "sampler/tpe/cell_kernels.h"

#include <algorithm>
#include <numeric>

#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

template <typename Act>
void ForEachBlock(std::span<const uint32_t> kernels, const Act& act) {
  for (size_t first = 0; first < kernels.size(); first += kKernelBlock) {
    act(kernels.subspan(first, std::min(kKernelBlock, kernels.size() - first)));
  }
}

}  // namespace

void GridKernelBlock::FindMasses(double low, double high) {
  for (size_t i = 0; i < size; i += kNumLanes) {
    const Lanes middle = LoadLanes(centre + i);
    const Lanes factor = LoadLanes(inverse + i);
    const Lanes mass =
        NormalMasses((low - middle) * factor, (high - middle) * factor) * LoadLanes(scale + i);
    StoreLanes(mass, masses + i);
    StoreLanes(Log(mass), logs + i);
  }
}

uint32_t CellKernels::Add(const NormalKernel& kernel) {
  const auto added = static_cast<uint32_t>(kernels_.size());
  kernels_.push_back({.normal = kernel});
  changes_.push_back(added);
  return added;
}

void CellKernels::SetBandwidth(uint32_t kernel, double bandwidth) {
  if (kernels_[kernel].normal.bandwidth == bandwidth) return;
  kernels_[kernel].normal.bandwidth = bandwidth;
  changes_.push_back(kernel);
}

void CellKernels::Refit() {
  const std::span<const uint32_t> latest = std::span(changes_).subspan(num_fitted_);
  if (latest.empty()) return;
  ForEachBlock(latest, [this](std::span<const uint32_t> block) { Fit(block); });
  num_fitted_ = changes_.size();
  // All is dropped now and then, and with it the cells that nobody asks for any more.
  constexpr size_t kMostChanges = 16;  // per kernel
  const absl::MutexLock lock(&kept_->mutex);
  const size_t num_kept = kept_->at.size() * 2 * size();
  if (num_fitted_ < kMostChanges * size() && num_kept < kMostNumbers) return;
  kept_->at.clear();
  changes_.clear();
  num_fitted_ = 0;
}

void CellKernels::Fit(std::span<const uint32_t> kernels) {
  GridKernelBlock block{.size = kernels.size()};
  for (size_t i = 0; i < block.size; ++i) {
    Kernel& kernel = kernels_[kernels[i]];
    kernel.inverse = 1.0 / kernel.normal.bandwidth;
    block.centre[i] = kernel.normal.centre;
    block.inverse[i] = kernel.inverse;
    block.scale[i] = 1.0;
  }
  block.FindMasses(0.0, 1.0);
  for (size_t i = 0; i < block.size; ++i) kernels_[kernels[i]].scale = 1.0 / block.masses[i];
}

void CellKernels::FillIn(std::span<const uint32_t> kernels, const Interval& cell,
                         Masses& masses) const {
  masses.values.resize(size());
  masses.logs.resize(size(), -kUnbounded);
  ForEachBlock(kernels, [&](std::span<const uint32_t> some) {
    GridKernelBlock block{.size = some.size()};
    for (size_t i = 0; i < block.size; ++i) {
      const Kernel& kernel = kernels_[some[i]];
      block.centre[i] = kernel.normal.centre;
      block.inverse[i] = kernel.inverse;
      block.scale[i] = kernel.scale;
    }
    block.FindMasses(cell.low, cell.high);
    for (size_t i = 0; i < block.size; ++i) {
      masses.values[some[i]] = block.masses[i];
      masses.logs[some[i]] = block.logs[i];
    }
  });
}

const CellKernels::Masses& CellKernels::MassesAt(const Coordinate& coordinate) const {
  const absl::MutexLock lock(&kept_->mutex);
  std::unique_ptr<KeptMasses>& kept = kept_->at[coordinate.at];
  const bool is_new = kept == nullptr;
  if (is_new) kept = std::make_unique<KeptMasses>();
  const std::span<const uint32_t> changed = std::span(changes_).subspan(kept->num_changes);
  if (is_new || changed.size() >= size()) {
    std::vector<uint32_t> all(size());
    std::iota(all.begin(), all.end(), uint32_t{0});
    FillIn(all, coordinate.cell, kept->masses);
  } else if (!changed.empty()) {
    FillIn(changed, coordinate.cell, kept->masses);
  }
  kept->num_changes = changes_.size();
  return kept->masses;
}

}  // namespace hpo::sampler
