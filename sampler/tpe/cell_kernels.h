// The normal kernels of a grid axis and the masses that they have in its cells. A kernel keeps its
// index for good. As long as kernels are few, masses are kept from one use to the next, and only
// those of kernels that have changed since are computed again, which has the same bits.
// Changes need exclusive access; between Refit() and the next change safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "sampler/numeric/normal_kernel.h"
#include "sampler/tpe/kernel_sums.h"

namespace hpo::sampler {

// At most kKernelBlock normal kernels, in any order, and the probability mass of each in a cell.
struct GridKernelBlock {
  size_t size = 0;
  double centre[kKernelBlock] = {};
  double inverse[kKernelBlock] = {};  // of the bandwidth
  double scale[kKernelBlock] = {};    // makes the mass in [0, 1] 1
  double masses[kKernelBlock] = {};
  double logs[kKernelBlock] = {};  // of the masses, -infinity for 0
  void FindMasses(double low, double high);
};

class CellKernels {
 public:
  // Of one cell, by kernel: the mass that it has there, and the natural logarithm, -infinity for 0.
  struct Masses {
    std::vector<double> values;
    std::vector<double> logs;
  };

  uint32_t Add(const NormalKernel& kernel);
  void SetBandwidth(uint32_t kernel, double bandwidth);
  // Brings what follows up to date with the changes.
  void Refit();

  const NormalKernel& operator[](uint32_t kernel) const { return kernels_[kernel].normal; }
  size_t size() const { return kernels_.size(); }

  bool keeps_masses() const { return size() <= kMostKept; }
  // Of all kernels, where masses are kept; valid until the next change.
  const Masses& MassesAt(const Coordinate& coordinate) const;
  // Fills in those of some kernels.
  void FillIn(std::span<const uint32_t> kernels, const Interval& cell, Masses& masses) const;

 private:
  static constexpr size_t kMostKept = 4096;
  static constexpr size_t kMostNumbers = size_t{1} << 20;  // in all that is kept

  struct Kernel {
    NormalKernel normal;
    double inverse = 0.0;  // of the bandwidth
    double scale = 0.0;    // makes the mass in [0, 1] 1
  };
  struct KeptMasses {
    Masses masses;
    size_t num_changes = 0;  // of all, so many are in it
  };
  struct Kept {
    absl::Mutex mutex;
    absl::flat_hash_map<double, std::unique_ptr<KeptMasses>> at ABSL_GUARDED_BY(mutex);
  };

  void Fit(std::span<const uint32_t> kernels);

  std::vector<Kernel> kernels_;
  std::vector<uint32_t> changes_;  // since nothing was kept
  size_t num_fitted_ = 0;          // of the changes
  std::unique_ptr<Kept> kept_ = std::make_unique<Kept>();
};

}  // namespace hpo::sampler
