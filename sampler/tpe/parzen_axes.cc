#include "sampler/tpe/parzen_axes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <utility>

#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

const double kSqrtTwoPi = std::sqrt(2.0 * std::numbers::pi);
// So many new observations are sorted in one by one, more of them by sorting all.
constexpr size_t kFewInsertions = 8;
// The least mass that a kernel has inside [0, 1]: centred at an end, as wide as it gets.
constexpr double kLeastMass = 0.3413;

// The least bandwidth among so many observations ("magic clip").
double WidthFloor(size_t count) {
  return 1.0 / static_cast<double>(std::min<size_t>(100, count + 2));
}

// Of an observation at `here`; a gap to a neighbour that is not there is 0.
double Bandwidth(double left_gap, double here, double right_gap, size_t count) {
  const double gap = count == 1 ? std::max(here, 1.0 - here) : std::max(left_gap, right_gap);
  return std::clamp(gap, WidthFloor(count), 1.0);
}

// Of the integral of exp(-z^2 / 2) over the prior's range, in its positions.
const double kLogPriorNorm = Log(NormalMass(-0.5, 0.5) * kSqrtTwoPi);

// Sums of the weights of the rows that have each kernel.
std::vector<double> WeightsByKernel(const PaddedColumn<uint32_t>& kernel, size_t num_kernels,
                                    const RowWeights& weights) {
  const PaddedColumn<double>& taken = weights.taken();
  constexpr size_t kSums = 4;  // side by side, so that one need not wait for the one before
  std::vector<double> sums(kSums * num_kernels, 0.0);
  for (size_t row = 0; row < kernel.size(); ++row) {
    sums[kernel[row] * kSums + row % kSums] += weights.ramp.Weight(taken[row]);
  }
  std::vector<double> totals;
  for (size_t i = 0; i < sums.size(); i += kSums) {
    totals.push_back((sums[i] + sums[i + 1]) + (sums[i + 2] + sums[i + 3]));
  }
  return totals;
}

template <typename T>
void InsertAt(std::vector<T>& values, size_t i, const T& value) {
  values.insert(values.begin() + static_cast<ptrdiff_t>(i), value);
}

template <typename T>
void EraseAt(std::vector<T>& values, size_t i) {
  values.erase(values.begin() + static_cast<ptrdiff_t>(i));
}

}  // namespace

void ContinuousAxis::Insert(size_t row, size_t rank, const Coordinate& coordinate) {
  if (rank < present_.size()) ShiftFrom(static_cast<double>(rank), 1.0, rank_);
  if (row < present_.size()) ShiftFrom(static_cast<double>(row), 1.0, row_);
  InsertAt(present_, row, static_cast<uint8_t>(coordinate.present));
  centre_.Insert(row, coordinate.present ? coordinate.at : NormalKernel{}.centre);
  row_inverse_.Insert(row, 1.0);
  log_norm_.Insert(row, kLogPriorNorm);
  if (!coordinate.present) return;
  const size_t last = num_observed();
  at_.Insert(last, coordinate.at);
  rank_.Insert(last, static_cast<double>(rank));
  row_.Insert(last, static_cast<double>(row));
  bandwidth_.Insert(last, -1.0);
  inverse_.Insert(last, 0.0);
  scale_.Insert(last, 0.0);
}

void ContinuousAxis::Erase(size_t row, size_t rank) {
  if (Has(row)) {
    const double own = static_cast<double>(rank);
    size_t found = PlaceAmongSorted(centre_[row], own);
    if (rank_[found] != own) found = num_sorted_;  // not yet sorted in
    while (rank_[found] != own) ++found;
    for (PaddedColumn<double>* column : {&at_, &rank_, &row_, &bandwidth_, &inverse_, &scale_}) {
      column->Erase(found);
    }
    if (found < num_sorted_) --num_sorted_;
  }
  EraseAt(present_, row);
  for (PaddedColumn<double>* column : {&centre_, &row_inverse_, &log_norm_}) column->Erase(row);
  if (rank < present_.size()) ShiftFrom(static_cast<double>(rank + 1), -1.0, rank_);
  if (row < present_.size()) ShiftFrom(static_cast<double>(row + 1), -1.0, row_);
}

void ContinuousAxis::Permute(std::span<const uint32_t> order) {
  present_ = Permuted(present_, order);
  for (PaddedColumn<double>* column : {&centre_, &row_inverse_, &log_norm_}) {
    column->Permute(order);
  }
  std::vector<double> now(order.size());
  for (size_t i = 0; i < order.size(); ++i) now[order[i]] = static_cast<double>(i);
  for (size_t i = 0; i < num_observed(); ++i) row_[i] = now[static_cast<size_t>(row_[i])];
}

// How many of the sorted observations come before one.
size_t ContinuousAxis::PlaceAmongSorted(double at, double rank) const {
  size_t low = 0;
  size_t high = num_sorted_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (at_[middle] < at || (at_[middle] == at && rank_[middle] < rank)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void ContinuousAxis::SortLatest() {
  const size_t count = num_observed();
  if (count - num_sorted_ > kFewInsertions) {
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), uint32_t{0});
    std::sort(order.begin(), order.end(), [this](uint32_t i, uint32_t j) {
      return at_[i] < at_[j] || (at_[i] == at_[j] && rank_[i] < rank_[j]);
    });
    for (PaddedColumn<double>* column : {&at_, &rank_, &row_}) column->Permute(order);
    for (size_t i = 0; i < count; ++i) bandwidth_[i] = -1.0;
    num_sorted_ = count;
  }
  for (; num_sorted_ < count; ++num_sorted_) {
    const size_t low = PlaceAmongSorted(at_[num_sorted_], rank_[num_sorted_]);
    for (PaddedColumn<double>* column : {&at_, &rank_, &row_, &bandwidth_, &inverse_, &scale_}) {
      column->Move(num_sorted_, low);
    }
  }
}

void ContinuousAxis::Refit(const RowWeights& weights) {
  SortLatest();
  const size_t count = num_observed();
  log_peak_ = -Log(kLeastMass * WidthFloor(count) * kSqrtTwoPi);
  fitted_.Resize(count);
  widest_.resize(NumBlocks(count));
  if (count == 1) widest_[0] = fitted_[0] = Bandwidth(0.0, at_[0], 0.0, count);
  if (count > 1) FitBandwidths(at_, WidthFloor(count), fitted_, widest_);
  std::vector<size_t> changed;
  for (size_t first = 0; first < count; first += kKernelBlock) {
    const size_t size = std::min(kKernelBlock, count - first);
    if (std::memcmp(&fitted_[first], &bandwidth_[first], size * sizeof(double)) == 0) continue;
    for (size_t i = first; i < first + size; ++i) {
      if (fitted_[i] != bandwidth_[i]) changed.push_back(i);
    }
  }
  const std::span<const size_t> all = changed;
  for (size_t i = 0; i < all.size(); i += kKernelBlock) {
    FitKernels(all.subspan(i, std::min(kKernelBlock, all.size() - i)));
  }
  given_.Resize(weights.given != nullptr ? count : 0);
  for (size_t i = 0; i < given_.size(); ++i) {
    given_[i] = (*weights.given)[static_cast<size_t>(row_[i])];
  }
  total_weight_ = SumWeights(weights.given != nullptr ? given_ : rank_, weights.ramp);
  bounds_ = BoundBlocks(centre_, row_inverse_);
  folds_ = FoldRuns(sorted(), WidthFloor(count), weights.ramp);
}

// At these places among the sorted, to the new bandwidths.
void ContinuousAxis::FitKernels(std::span<const size_t> places) {
  GridKernelBlock block{.size = places.size()};
  for (size_t i = 0; i < block.size; ++i) {
    const double bandwidth = fitted_[places[i]];
    block.centre[i] = at_[places[i]];
    block.inverse[i] = 1.0 / bandwidth;
    block.scale[i] = bandwidth * kSqrtTwoPi;
  }
  block.FindMasses(0.0, 1.0);  // which are the norms, scaled like this
  for (size_t i = 0; i < block.size; ++i) {
    const size_t place = places[i];
    const size_t row = static_cast<size_t>(row_[place]);
    bandwidth_[place] = fitted_[place];
    row_inverse_[row] = inverse_[place] = block.inverse[i];
    log_norm_[row] = block.logs[i];
    scale_[place] = 1.0 / block.masses[i];
  }
}

SortedKernels ContinuousAxis::sorted() const {
  return {.size = num_observed(),
          .centre = at_.data(),
          .inverse = inverse_.data(),
          .scale = scale_.data(),
          .rank = given_.size() > 0 ? given_.data() : rank_.data(),
          .widest = widest_.data(),
          .run = RunLength(num_observed()),
          .folds = folds_.data(),
          .num_folds = folds_.size()};
}

NormalKernel ContinuousAxis::KernelOf(size_t row) const {
  return {centre_[row], 1.0 / row_inverse_[row]};
}

double ContinuousAxis::LogPrior(double at) {
  const double z = at - NormalKernel{}.centre;
  return -0.5 * z * z - kLogPriorNorm;
}

JointAxis ContinuousAxis::joint() const {
  return {.centre = centre_.data(),
          .inverse = row_inverse_.data(),
          .log_norm = log_norm_.data(),
          .bounds = bounds_.data()};
}

std::vector<double> ContinuousAxis::LogMarginals(std::span<const double> at,
                                                 const MarginalWeights& weights) const {
  std::vector<MarginalPoint> points;
  for (const double position : at) points.push_back({.at = position});
  const double count = static_cast<double>(num_observed() + 1);
  const double least_prior = LogPrior(0.0) + Log(weights.prior);
  const double reach = std::sqrt(2.0 * (LogPeak() + Log(count) - least_prior + kLogPrecision));
  SumMarginal(sorted(), weights.ramp, reach, points);
  std::vector<double> logs(at.size());
  for (size_t first = 0; first < at.size(); first += kNumLanes) {
    const size_t size = std::min<size_t>(kNumLanes, at.size() - first);
    double log_priors[kNumLanes] = {};
    double sums[kNumLanes] = {};
    for (size_t i = 0; i < size; ++i) {
      log_priors[i] = LogPrior(points[first + i].at);
      sums[i] = points[first + i].sum.Total();
    }
    const Lanes sum = LoadLanes(sums) + Exp(LoadLanes(log_priors)) * weights.prior;
    StoreLanes(Log(sum / (total_weight_ + weights.prior)), sums);
    std::copy_n(sums, size, &logs[first]);
  }
  return logs;
}

GridAxis::GridAxis() { kernels_.Add(NormalKernel{}); }

uint32_t GridAxis::SlotAt(double at) {
  const auto [found, is_new] = slot_at_.emplace(at, static_cast<uint32_t>(slots_.size()));
  if (is_new) {
    const auto place =
        std::lower_bound(order_.begin(), order_.end(), at,
                         [this](uint32_t slot, double value) { return slots_[slot].at < value; });
    order_.insert(place, found->second);
    slots_.push_back({.at = at});
    changed_.push_back(0);
  }
  return found->second;
}

void GridAxis::Insert(size_t row, size_t rank, const Coordinate& coordinate) {
  if (rank < slot_.size()) ShiftRanks(static_cast<double>(rank), 1.0);
  const uint32_t slot = coordinate.present ? SlotAt(coordinate.at) : kAbsent;
  InsertAt(slot_, row, slot);
  kernel_.Insert(row, kPrior);
  changed_[slot] = 1;
  if (++slots_[slot].count <= 3) same_kernels_ = false;
}

void GridAxis::Erase(size_t row, size_t rank) {
  const uint32_t slot = slot_[row];
  changed_[slot] = 1;
  if (--slots_[slot].count <= 2) same_kernels_ = false;
  EraseAt(slot_, row);
  kernel_.Erase(row);
  if (rank < slot_.size()) ShiftRanks(static_cast<double>(rank + 1), -1.0);
}

void GridAxis::ShiftRanks(double from, double by) {
  for (Slot& slot : slots_) {
    slot.first += slot.first >= from ? by : 0.0;
    slot.last += slot.last >= from ? by : 0.0;
  }
}

void GridAxis::Permute(std::span<const uint32_t> order) {
  slot_ = Permuted(slot_, order);
  kernel_.Permute(order);
}

// The next of the sorted kernels: that of the last where it is equal, else that of `own`.
uint32_t GridAxis::AddKernel(uint32_t& own, const NormalKernel& kernel) {
  if (sorted_.size() > 1 && kernels_[sorted_.back()] == kernel) return sorted_.back();
  if (own == kPrior) own = kernels_.Add(kernel);
  kernels_.SetBandwidth(own, kernel.bandwidth);
  if (sorted_.size() % kKernelBlock == 0) widest_.push_back(0.0);
  widest_.back() = std::max(widest_.back(), kernel.bandwidth);
  sorted_.push_back(own);
  return own;
}

void GridAxis::MakeKernels() {
  sorted_ = {kPrior};
  widest_ = {NormalKernel{}.bandwidth};
  std::vector<uint32_t> observed;
  for (const uint32_t slot : order_) {
    if (slots_[slot].count > 0) observed.push_back(slot);
  }
  for (size_t i = 0; i < observed.size(); ++i) {
    Slot& slot = slots_[observed[i]];
    const Slot before = slot;
    const double here = slot.at;
    const double left = i > 0 ? here - slots_[observed[i - 1]].at : 0.0;
    const double right = i + 1 < observed.size() ? slots_[observed[i + 1]].at - here : 0.0;
    const auto add = [&](uint32_t& own, double left_gap, double right_gap) {
      return AddKernel(own, {here, Bandwidth(left_gap, here, right_gap, num_observed_)});
    };
    // An observation between equal ones has no gap.
    slot.first_kernel = add(slot.own_first, left, slot.count > 1 ? 0.0 : right);
    if (slot.count > 2) slot.middle_kernel = add(slot.own_middle, 0.0, 0.0);
    if (slot.count > 1) slot.last_kernel = add(slot.own_last, 0.0, right);
    if (slot.first_kernel != before.first_kernel || slot.middle_kernel != before.middle_kernel ||
        slot.last_kernel != before.last_kernel) {
      changed_[observed[i]] = 1;
    }
  }
  kernels_.Refit();
}

uint32_t GridAxis::KernelAt(const Slot& slot, double rank) const {
  if (rank == slot.first) return slot.first_kernel;
  return rank == slot.last ? slot.last_kernel : slot.middle_kernel;
}

// To the rows of the slots that have changed.
void GridAxis::AssignKernels(const PaddedColumn<double>& ranks) {
  changed_[kAbsent] = 0;  // it has the prior's in any case
  std::vector<size_t> rows;
  for (size_t row = 0; row < slot_.size(); ++row) {
    if (changed_[slot_[row]] != 0) rows.push_back(row);
  }
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (changed_[slot] == 0) continue;
    slots_[slot].first = static_cast<double>(slot_.size());
    slots_[slot].last = -1.0;
  }
  for (const size_t row : rows) {
    Slot& slot = slots_[slot_[row]];
    slot.first = std::min(slot.first, ranks[row]);
    slot.last = std::max(slot.last, ranks[row]);
  }
  for (const size_t row : rows) kernel_[row] = KernelAt(slots_[slot_[row]], ranks[row]);
  std::fill(changed_.begin(), changed_.end(), uint8_t{0});
}

void GridAxis::Refit(const RowWeights& weights) {
  const size_t num_observed = slot_.size() - slots_[kAbsent].count;
  if (!same_kernels_ || WidthFloor(num_observed) != WidthFloor(num_observed_)) {
    num_observed_ = num_observed;
    MakeKernels();
    same_kernels_ = true;
  }
  AssignKernels(weights.ranks);
  std::vector<double> by_kernel = WeightsByKernel(kernel_, kernels_.size(), weights);
  by_kernel[kPrior] = 0.0;
  weight_ = Permuted(by_kernel, sorted_);
  total_weight_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
}

NormalKernel GridAxis::KernelOf(size_t row) const { return kernels_[kernel_[row]]; }

double GridAxis::LogPriorFloor(const Interval& cell) {
  // The prior's density is at least 0.919 of the uniform one.
  return Log(cell.high - cell.low) - 0.1;
}

KernelTable GridAxis::TableAt(const Coordinate& coordinate, double reach,
                              const MarginalWeights& weights) const {
  const Interval& cell = coordinate.cell;
  CellKernels::Masses own;
  const bool kept = kernels_.keeps_masses();
  const CellKernels::Masses& masses = kept ? kernels_.MassesAt(coordinate) : own;
  constexpr size_t kSums = 4;  // side by side, so that one need not wait for the one before
  double sums[kSums] = {};
  for (size_t first = 0; first < sorted_.size(); first += kKernelBlock) {
    const size_t size = std::min(kKernelBlock, sorted_.size() - first);
    const double near = reach * widest_[first / kKernelBlock];
    // The prior, in the first block, is out of order.
    const double lowest = first == 0 ? 0.0 : kernels_[sorted_[first]].centre;
    const double highest = first == 0 ? 1.0 : kernels_[sorted_[first + size - 1]].centre;
    if (cell.high < lowest - near || cell.low > highest + near) continue;
    if (!kept) kernels_.FillIn({&sorted_[first], size}, cell, own);
    for (size_t i = first; i < first + size; ++i) {
      sums[i % kSums] += weight_[i] * masses.values[sorted_[i]];
    }
  }
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  const double of_prior = weights.prior * masses.values[kPrior];
  return {.at = coordinate.at,
          .own = std::move(own.logs),
          .kept = kept ? masses.logs.data() : nullptr,
          .log_marginal = Log((sum + of_prior) / (total_weight_ + weights.prior))};
}

void ChoiceAxis::Insert(size_t row, size_t, const Coordinate& coordinate) {
  kernel_.Insert(row, coordinate.present ? static_cast<uint32_t>(coordinate.at) + 1 : kPrior);
  num_observed_ += coordinate.present ? 1 : 0;
}

void ChoiceAxis::Erase(size_t row, size_t) {
  num_observed_ -= Has(row) ? 1 : 0;
  kernel_.Erase(row);
}

void ChoiceAxis::Permute(std::span<const uint32_t> order) { kernel_.Permute(order); }

void ChoiceAxis::Refit(const RowWeights& weights) {
  weight_ = WeightsByKernel(kernel_, num_choices_ + 1, weights);
  weight_[kPrior] = 0.0;
  const double smoothing = prior_weight_ / static_cast<double>(num_observed_ + 1);
  const double total = 1.0 + static_cast<double>(num_choices_) * smoothing;
  same_ = (smoothing + 1.0) / total;
  other_ = smoothing / total;
}

double ChoiceAxis::LogPrior() const { return -Log(static_cast<double>(num_choices_)); }

double ChoiceAxis::Probability(size_t row, size_t choice) const {
  if (row == kNoRow || !Has(row)) return 1.0 / static_cast<double>(num_choices_);
  return kernel_[row] == choice + 1 ? same_ : other_;
}

KernelTable ChoiceAxis::TableAt(double choice, const MarginalWeights& weights) const {
  const size_t own = static_cast<size_t>(choice) + 1;
  KernelTable table{.at = choice, .own = std::vector<double>(num_choices_ + 1, Log(other_))};
  table.own[kPrior] = LogPrior();
  table.own[own] = Log(same_);
  const double total = std::accumulate(weight_.begin(), weight_.end(), 0.0);
  const double prior = weights.prior / static_cast<double>(num_choices_);
  const double sum = weight_[own] * same_ + (total - weight_[own]) * other_ + prior;
  table.log_marginal = Log(sum / (total + weights.prior));
  return table;
}

}  // namespace hpo::sampler
