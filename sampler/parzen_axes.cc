#include "sampler/parzen_axes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "sampler/portable_math.h"
#include "sampler/truncated_normal.h"

namespace hpo {
namespace {

const double kSqrtTwoPi = std::sqrt(2.0 * std::numbers::pi);
// So many new observations are sorted in one by one, more of them by sorting all.
constexpr size_t kFewInsertions = 8;
// The least mass that a kernel has inside [0, 1]: centred at an end, as wide as it gets.
constexpr double kLeastMass = 0.3413;
// ln 2^53: what is smaller by that does not change a sum.
constexpr double kLogPrecision = 36.74;

// The least bandwidth among so many observations ("magic clip").
double WidthFloor(size_t count) {
  return 1.0 / static_cast<double>(std::min<size_t>(100, count + 2));
}

// Of an observation at `here`; a gap to a neighbour that is not there is 0.
double Bandwidth(double left_gap, double here, double right_gap, size_t count) {
  const double gap = count == 1 ? std::max(here, 1.0 - here) : std::max(left_gap, right_gap);
  return std::clamp(gap, WidthFloor(count), 1.0);
}

// The integral of exp(-z^2 / 2) over the kernel's range, in its positions.
double NormOf(const NormalKernel& kernel) { return kernel.Mass() * kernel.bandwidth * kSqrtTwoPi; }

const double kLogPriorNorm = Log(NormOf(NormalKernel{}));

// Sums of the weights of the rows that have each kernel.
std::vector<double> WeightsByKernel(const PaddedColumn<uint32_t>& kernel, size_t num_kernels,
                                    const RecencyRamp& ramp, const PaddedColumn<double>& ranks) {
  constexpr size_t kSums = 4;  // side by side, so that one need not wait for the one before
  std::vector<double> sums(kSums * num_kernels, 0.0);
  for (size_t row = 0; row < kernel.size(); ++row) {
    sums[kernel[row] * kSums + row % kSums] += ramp.Weight(ranks[row]);
  }
  std::vector<double> weights;
  for (size_t i = 0; i < sums.size(); i += kSums) {
    weights.push_back((sums[i] + sums[i + 1]) + (sums[i + 2] + sums[i + 3]));
  }
  return weights;
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

double NormalKernel::Mass() const {
  return NormalMass(-centre / bandwidth, (1.0 - centre) / bandwidth);
}

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

void ContinuousAxis::Refit(const RecencyRamp& ramp, const PaddedColumn<double>&) {
  SortLatest();
  const size_t count = num_observed();
  log_peak_ = -Log(kLeastMass * WidthFloor(count) * kSqrtTwoPi);
  fitted_.Resize(count);
  widest_.resize(NumBlocks(count));
  if (count == 1) widest_[0] = fitted_[0] = Bandwidth(0.0, at_[0], 0.0, count);
  if (count > 1) FitBandwidths(at_, WidthFloor(count), fitted_, widest_);
  for (size_t i = 0; i < count; ++i) {
    if (fitted_[i] == bandwidth_[i]) continue;
    const double bandwidth = fitted_[i];
    const double norm = NormOf({at_[i], bandwidth});
    const size_t row = static_cast<size_t>(row_[i]);
    bandwidth_[i] = bandwidth;
    row_inverse_[row] = inverse_[i] = 1.0 / bandwidth;
    log_norm_[row] = Log(norm);
    scale_[i] = 1.0 / norm;
  }
  total_weight_ = SumWeights(rank_, ramp);
  bounds_ = BoundBlocks(centre_, row_inverse_);
  folds_ = FoldRuns(sorted(), WidthFloor(count), ramp);
}

SortedKernels ContinuousAxis::sorted() const {
  return {.size = num_observed(),
          .centre = at_.data(),
          .inverse = inverse_.data(),
          .scale = scale_.data(),
          .rank = rank_.data(),
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
  std::vector<double> logs;
  for (const MarginalPoint& point : points) {
    const double sum = point.sum.Total() + weights.prior * Exp(LogPrior(point.at));
    logs.push_back(Log(sum / (total_weight_ + weights.prior)));
  }
  return logs;
}

uint32_t GridAxis::SlotAt(double at) {
  const auto [found, is_new] = slot_at_.emplace(at, static_cast<uint32_t>(slots_.size()));
  if (is_new) {
    const auto place =
        std::lower_bound(order_.begin(), order_.end(), at,
                         [this](uint32_t slot, double value) { return slots_[slot].at < value; });
    order_.insert(place, found->second);
    slots_.push_back({.at = at});
  }
  return found->second;
}

void GridAxis::Insert(size_t row, size_t rank, const Coordinate& coordinate) {
  if (rank < slot_.size()) ShiftRanks(static_cast<double>(rank), 1.0);
  const uint32_t slot = coordinate.present ? SlotAt(coordinate.at) : kAbsent;
  InsertAt(slot_, row, slot);
  kernel_.Insert(row, 0);
  ++slots_[slot].count;
  slots_[slot].changed = true;
}

void GridAxis::Erase(size_t row, size_t rank) {
  Slot& slot = slots_[slot_[row]];
  --slot.count;
  slot.changed = true;
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

uint32_t GridAxis::AddKernel(double centre, double bandwidth) {
  const size_t last = centre_.size();
  if (last > 1 && centre_[last - 1] == centre && bandwidth_[last - 1] == bandwidth) {
    return static_cast<uint32_t>(last - 1);
  }
  centre_.Insert(last, centre);
  inverse_.Insert(last, 1.0 / bandwidth);
  scale_.Insert(last, 1.0 / NormalKernel{centre, bandwidth}.Mass());
  bandwidth_.push_back(bandwidth);
  if (last % kKernelBlock == 0) widest_.push_back(0.0);
  widest_.back() = std::max(widest_.back(), bandwidth);
  return static_cast<uint32_t>(last);
}

// Of the slots that have changed.
void GridAxis::FindEnds(const PaddedColumn<double>& ranks) {
  for (Slot& slot : slots_) {
    if (!slot.changed) continue;
    slot.first = static_cast<double>(slot_.size());
    slot.last = -1.0;
  }
  for (size_t row = 0; row < slot_.size(); ++row) {
    Slot& slot = slots_[slot_[row]];
    if (!slot.changed) continue;
    slot.first = std::min(slot.first, ranks[row]);
    slot.last = std::max(slot.last, ranks[row]);
  }
}

void GridAxis::MakeKernels() {
  const size_t num_observed = slot_.size() - slots_[kAbsent].count;
  for (PaddedColumn<double>* column : {&centre_, &inverse_, &scale_}) column->Clear();
  bandwidth_.clear();
  widest_.clear();
  AddKernel(NormalKernel{}.centre, NormalKernel{}.bandwidth);
  std::vector<uint32_t> observed;
  for (const uint32_t slot : order_) {
    if (slots_[slot].count > 0) observed.push_back(slot);
  }
  for (size_t i = 0; i < observed.size(); ++i) {
    Slot& slot = slots_[observed[i]];
    const double here = slot.at;
    const double left = i > 0 ? here - slots_[observed[i - 1]].at : 0.0;
    const double right = i + 1 < observed.size() ? slots_[observed[i + 1]].at - here : 0.0;
    const auto add = [&](double left_gap, double right_gap) {
      return AddKernel(here, Bandwidth(left_gap, here, right_gap, num_observed));
    };
    // An observation between equal ones has no gap.
    slot.first_kernel = add(left, slot.count > 1 ? 0.0 : right);
    if (slot.count > 2) slot.middle_kernel = add(0.0, 0.0);
    if (slot.count > 1) slot.last_kernel = add(0.0, right);
  }
}

uint32_t GridAxis::KernelAt(const Slot& slot, double rank) const {
  if (&slot == &slots_[kAbsent]) return 0;
  if (rank == slot.first) return slot.first_kernel;
  return rank == slot.last ? slot.last_kernel : slot.middle_kernel;
}

void GridAxis::Refit(const RecencyRamp& ramp, const PaddedColumn<double>& ranks) {
  FindEnds(ranks);
  const PaddedColumn<double> centres = std::exchange(centre_, {});
  const std::vector<double> bandwidths = std::exchange(bandwidth_, {});
  MakeKernels();
  const bool same = bandwidths == bandwidth_ && centres == centre_;
  for (size_t row = 0; row < slot_.size(); ++row) {
    const Slot& slot = slots_[slot_[row]];
    if (!same || slot.changed) kernel_[row] = KernelAt(slot, ranks[row]);
  }
  for (Slot& slot : slots_) slot.changed = false;
  weight_ = WeightsByKernel(kernel_, centre_.size(), ramp, ranks);
  weight_[0] = 0.0;
  total_weight_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
}

NormalKernel GridAxis::KernelOf(size_t row) const {
  const uint32_t kernel = kernel_[row];
  return {centre_[kernel], bandwidth_[kernel]};
}

double GridAxis::LogPriorFloor(const Interval& cell) {
  // The prior's density is at least 0.919 of the uniform one.
  return Log(cell.high - cell.low) - 0.1;
}

KernelTable GridAxis::TableAt(const Coordinate& coordinate, double reach,
                              const MarginalWeights& weights) const {
  const Interval& cell = coordinate.cell;
  const size_t count = centre_.size();
  KernelTable table{.at = coordinate.at, .logs = {}, .log_marginal = 0.0};
  table.logs.assign(count + kKernelBlock, -kUnbounded);
  std::vector<double> masses(kKernelBlock);
  double sum = 0.0;
  for (size_t first = 0; first < count; first += kKernelBlock) {
    const size_t size = std::min(kKernelBlock, count - first);
    const double near = reach * widest_[first / kKernelBlock];
    // The prior, in the first block, is out of order.
    const double lowest = first == 0 ? 0.0 : centre_[first];
    const double highest = first == 0 ? 1.0 : centre_[first + size - 1];
    if (cell.high < lowest - near || cell.low > highest + near) continue;
    CellMasses({size, centre_.data() + first, inverse_.data() + first, scale_.data() + first},
               cell.low, cell.high, masses.data(), table.logs.data() + first);
    for (size_t i = 0; i < size; ++i) sum += weight_[first + i] * masses[i];
    if (first == 0) sum += weights.prior * masses[0];
  }
  table.log_marginal = Log(sum / (total_weight_ + weights.prior));
  return table;
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

void ChoiceAxis::Refit(const RecencyRamp& ramp, const PaddedColumn<double>& ranks) {
  weight_ = WeightsByKernel(kernel_, num_choices_ + 1, ramp, ranks);
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
  KernelTable table{.at = choice, .logs = {}, .log_marginal = 0.0};
  table.logs.assign(num_choices_ + 1, Log(other_));
  table.logs[kPrior] = LogPrior();
  table.logs[own] = Log(same_);
  const double total = std::accumulate(weight_.begin(), weight_.end(), 0.0);
  const double prior = weights.prior / static_cast<double>(num_choices_);
  const double sum = weight_[own] * same_ + (total - weight_[own]) * other_ + prior;
  table.log_marginal = Log(sum / (total + weights.prior));
  return table;
}

}  // namespace hpo
