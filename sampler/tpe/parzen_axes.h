// The kernels of a Parzen density on one axis, for all its components: a truncated normal on [0, 1]
// for each observation, its mass over a cell for values on a grid, or a smoothed choice. A
// component whose observation lacks the axis has the prior's kernel there.
//
// Components are rows, in whatever order; the rank of a row tells how many are older. Rows are
// inserted and erased, which moves rows and ranks after them; Refit() then brings the kernels up to
// date, at the cost of what has changed and of one pass, and the result depends on the rows alone,
// not on how they came. One owner; between Refit() and the next change safe to
// share between threads. Source: as parzen_estimator.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sampler/numeric/normal_kernel.h"
#include "sampler/tpe/cell_kernels.h"
#include "sampler/tpe/kernel_sums.h"

namespace hpo::sampler {

// ln 2^53: what is smaller by that does not change a sum.
constexpr double kLogPrecision = 36.74;

// What the rows count: by their ranks, or given ones.
struct RowWeights {
  RecencyRamp ramp;
  const PaddedColumn<double>& ranks;
  const PaddedColumn<double>* given = nullptr;  // the ramp is RecencyRamp::OfWeights() then

  // What the ramp takes, by row.
  const PaddedColumn<double>& taken() const { return given != nullptr ? *given : ranks; }
};

// The marginal density of an axis is a sum over the components that have it, and the prior.
struct MarginalWeights {
  RecencyRamp ramp;
  double prior = 1.0;
};

// Positions of any real number.
class ContinuousAxis {
 public:
  void Insert(size_t row, size_t rank, const Coordinate& coordinate);
  void Erase(size_t row, size_t rank);
  void Permute(std::span<const uint32_t> order);  // the row that was order[i] becomes i
  void Refit(const RowWeights& weights);

  bool Has(size_t row) const { return present_[row] != 0; }
  NormalKernel KernelOf(size_t row) const;
  // Natural log of the prior's kernel at `at`, and an upper bound of every kernel's.
  static double LogPrior(double at);
  double LogPeak() const { return log_peak_; }
  JointAxis joint() const;

  // Natural log of the marginal density at each position. Kernels are left out where all of them
  // together come to less than 2^-53 of the prior's share.
  std::vector<double> LogMarginals(std::span<const double> at,
                                   const MarginalWeights& weights) const;

 private:
  void SortLatest();
  void FitKernels(std::span<const size_t> places);
  size_t PlaceAmongSorted(double at, double rank) const;
  SortedKernels sorted() const;
  size_t num_observed() const { return at_.size(); }

  // By row; of the prior where absent.
  std::vector<uint8_t> present_;
  PaddedColumn<double> centre_;
  PaddedColumn<double> row_inverse_;
  PaddedColumn<double> log_norm_;
  std::vector<BlockBounds> bounds_;  // by block of rows
  // By position, ties by rank; from `num_sorted_` on as they came.
  PaddedColumn<double> at_;
  PaddedColumn<double> rank_;
  PaddedColumn<double> row_;
  PaddedColumn<double> bandwidth_;  // negative: to be fitted
  PaddedColumn<double> inverse_;
  PaddedColumn<double> scale_;
  PaddedColumn<double> fitted_;  // with new bandwidths
  PaddedColumn<double> given_;   // weights; empty: by rank
  size_t num_sorted_ = 0;
  std::vector<double> widest_;  // by block
  std::vector<FoldedRuns> folds_;
  double total_weight_ = 0.0;  // of the components that have the axis
  double log_peak_ = 0.0;
};

// Logarithms of all kernels of an axis at one coordinate, and their marginal sum.
struct KernelTable {
  double at = 0.0;
  std::vector<double> own;       // unless the axis keeps them
  const double* kept = nullptr;  // until the next change of the axis
  double log_marginal = 0.0;
  const double* logs() const { return kept != nullptr ? kept : own.data(); }  // the prior's first
};

// Values on a grid: few kernels differ, as equal observations have at most three bandwidths.
class GridAxis {
 public:
  GridAxis();
  void Insert(size_t row, size_t rank, const Coordinate& coordinate);
  void Erase(size_t row, size_t rank);
  void Permute(std::span<const uint32_t> order);  // the row that was order[i] becomes i
  void Refit(const RowWeights& weights);

  bool Has(size_t row) const { return slot_[row] != kAbsent; }
  NormalKernel KernelOf(size_t row) const;
  // Below the natural log of the prior's kernel in the cell, by less than 0.2.
  static double LogPriorFloor(const Interval& cell);
  static double LogPeak() { return 0.0; }
  JointAxis joint() const { return {.kernel = kernel_.data()}; }

  // Kernels further from the cell than `reach` bandwidths do not count.
  KernelTable TableAt(const Coordinate& coordinate, double reach,
                      const MarginalWeights& weights) const;

 private:
  static constexpr uint32_t kAbsent = 0;
  static constexpr uint32_t kPrior = 0;

  // The observations of one position. The first, those between and the last differ in their gaps.
  struct Slot {
    double at = 0.0;
    size_t count = 0;
    // Ranks of the first and the last observation.
    double first = 0.0;
    double last = 0.0;
    // The kernels of these and those between: those made for them, kPrior where none was yet, and
    // the ones that they have, which may be the same.
    uint32_t own_first = kPrior;
    uint32_t own_middle = kPrior;
    uint32_t own_last = kPrior;
    uint32_t first_kernel = kPrior;
    uint32_t middle_kernel = kPrior;
    uint32_t last_kernel = kPrior;
  };

  uint32_t SlotAt(double at);
  void ShiftRanks(double from, double by);
  uint32_t AddKernel(uint32_t& own, const NormalKernel& kernel);
  void MakeKernels();
  void AssignKernels(const PaddedColumn<double>& ranks);
  uint32_t KernelAt(const Slot& slot, double rank) const;

  std::vector<uint32_t> slot_;     // by row
  PaddedColumn<uint32_t> kernel_;  // by row
  std::vector<Slot> slots_ = {{}};
  // By slot: whether its rows may have other kernels than those in `kernel_`.
  std::vector<uint8_t> changed_ = {0};
  bool same_kernels_ = false;  // no observation since came or went that would change them
  size_t num_observed_ = 0;    // when they were made
  absl::flat_hash_map<double, uint32_t> slot_at_;
  std::vector<uint32_t> order_;  // of the slots but the absent one's, by position
  CellKernels kernels_;          // the prior's first
  // The prior's kernel, then those of the observations by position.
  std::vector<uint32_t> sorted_;
  std::vector<double> weight_;  // of the components that have the kernel and the axis
  std::vector<double> widest_;  // by block
  double total_weight_ = 0.0;
};

// One of several choices, each observation smoothed over all.
class ChoiceAxis {
 public:
  ChoiceAxis(size_t num_choices, double prior_weight)
      : num_choices_(num_choices), prior_weight_(prior_weight) {}

  void Insert(size_t row, size_t rank, const Coordinate& coordinate);
  void Erase(size_t row, size_t rank);
  void Permute(std::span<const uint32_t> order);  // the row that was order[i] becomes i
  void Refit(const RowWeights& weights);

  bool Has(size_t row) const { return kernel_[row] != kPrior; }
  double LogPrior() const;
  static double LogPeak() { return 0.0; }
  JointAxis joint() const { return {.kernel = kernel_.data()}; }
  KernelTable TableAt(double choice, const MarginalWeights& weights) const;

  // Probability of a choice by the kernel of a row; kNoRow: by the prior's.
  static constexpr size_t kNoRow = static_cast<size_t>(-1);
  double Probability(size_t row, size_t choice) const;

 private:
  static constexpr uint32_t kPrior = 0;  // the kernel of choice c is c + 1

  size_t num_choices_;
  double prior_weight_;
  PaddedColumn<uint32_t> kernel_;  // by row
  size_t num_observed_ = 0;
  std::vector<double> weight_;  // by kernel
  double same_ = 0.0;
  double other_ = 0.0;
};

}  // namespace hpo::sampler
