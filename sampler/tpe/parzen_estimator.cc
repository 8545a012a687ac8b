#include "sampler/tpe/parzen_estimator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

using Kind = ParzenAxis::Kind;

absl::Status CheckCoordinate(const ParzenAxis& axis, const Coordinate& coordinate) {
  if (!coordinate.present) return absl::OkStatus();
  const double limit =
      axis.kind == Kind::kCategorical ? static_cast<double>(axis.num_choices) - 1.0 : 1.0;
  if (!(coordinate.at >= 0.0 && coordinate.at <= limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a coordinate in [0, ", limit, "], got ", coordinate.at));
  }
  return absl::OkStatus();
}

absl::Status CheckPoint(const std::vector<ParzenAxis>& axes, const Point& point) {
  if (point.size() != axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a point of ", axes.size(), " axes, got ", point.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    HPO_RETURN_IF_ERROR(Annotate(CheckCoordinate(axes[i], point[i]), absl::StrCat("axis ", i)));
  }
  return absl::OkStatus();
}

// Index of the interval of `cumulative` (increasing) that holds a uniform draw.
size_t DrawByWeight(const std::vector<double>& cumulative, Rng& rng) {
  const double draw = rng.Uniform() * cumulative.back();
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), draw);
  return std::min(static_cast<size_t>(found - cumulative.begin()), cumulative.size() - 1);
}

}  // namespace

// What the points have in common with an axis, worked out once.
struct ParzenEstimator::Evaluation {
  std::span<const Point> points;
  // By axis: one table per coordinate, of tabled axes, and which of them is each point's.
  std::vector<std::vector<KernelTable>> tables;
  std::vector<std::vector<size_t>> table_of;
  std::vector<double> logs;  // by point: the result

  const KernelTable& TableAt(size_t axis, size_t point) const {
    return tables[axis][table_of[axis][point]];
  }
};

ParzenEstimator::ParzenEstimator(std::vector<ParzenAxis> axes, double prior_weight, RowOrder order)
    : prior_weight_(prior_weight), order_(order) {
  for (const ParzenAxis& axis : axes) {
    marginal_shares_.push_back(axis.marginal_share);
    if (axis.kind == Kind::kContinuous) continuous_.push_back(axes_.size());
    groups_.resize(std::max(groups_.size(), axis.group + 1));
    switch (axis.kind) {
      case Kind::kContinuous:
        axes_.emplace_back(ContinuousAxis());
        break;
      case Kind::kGrid:
        axes_.emplace_back(GridAxis());
        break;
      case Kind::kCategorical:
        axes_.emplace_back(ChoiceAxis(axis.num_choices, prior_weight));
        break;
    }
  }
  for (const bool continuous : {true, false}) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if ((axes[i].kind == Kind::kContinuous) != continuous) continue;
      groups_[axes[i].group].axes.push_back(i);
    }
  }
  Refit();
  PrepareDraws();
}

absl::StatusOr<ParzenEstimator> ParzenEstimator::Create(std::vector<ParzenAxis> axes,
                                                        std::span<const Point> points,
                                                        double prior_weight, RowOrder order) {
  if (!std::isfinite(prior_weight) || prior_weight <= 0.0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a prior weight > 0, got ", prior_weight));
  }
  for (const Point& point : points) HPO_RETURN_IF_ERROR(CheckPoint(axes, point));
  ParzenEstimator result(std::move(axes), prior_weight, order);
  int64_t number = 0;
  for (const Point& point : points) result.Insert(number++, point);
  result.Refit();
  result.PrepareDraws();
  return result;
}

// The coordinates on the continuous axes, their bits in turns, so that equal first bits are near
// each other on all axes (Morton 1966). Points that lack an axis come first on it.
uint64_t ParzenEstimator::PlaceOf(const Point& point) const {
  constexpr size_t kMostBits = 8;
  const size_t num_axes = std::min<size_t>(continuous_.size(), 64);
  if (order_ == RowOrder::kByAge || num_axes == 0) return 0;
  const size_t num_bits = std::min(kMostBits, 64 / num_axes);
  const double steps = static_cast<double>((1 << num_bits) - 1);
  uint64_t place = 0;
  for (size_t bit = num_bits; bit-- > 0;) {
    for (size_t i = 0; i < num_axes; ++i) {
      const Coordinate& here = point[continuous_[i]];
      const double step = here.present ? 1.0 + std::min(here.at * steps, steps - 1.0) : 0.0;
      place = place << 1 | (static_cast<uint64_t>(step) >> bit & 1);
    }
  }
  return place;
}

void ParzenEstimator::Insert(int64_t number, const Point& point) {
  const auto older = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  const size_t rank = static_cast<size_t>(older - numbers_.begin());
  if (rank < numbers_.size()) ShiftFrom(static_cast<double>(rank), 1.0, ranks_);
  numbers_.insert(older, number);
  const Row added{PlaceOf(point), number};
  const size_t row = FindRow(added);
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(row), added);
  ranks_.Insert(row, static_cast<double>(rank));
  for (size_t i = 0; i < axes_.size(); ++i) {
    std::visit([&](auto& axis) { axis.Insert(row, rank, point[i]); }, axes_[i]);
  }
  for (Group& group : groups_) group.num_without += HasAny(group, row) ? 0 : 1;
}

void ParzenEstimator::Erase(int64_t number) {
  const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  const size_t rank = static_cast<size_t>(found - numbers_.begin());
  numbers_.erase(found);
  const auto is_it = [number](const Row& row) { return row.number == number; };
  const size_t row =
      number >= settled_
          ? FindRow({.number = number})
          : static_cast<size_t>(std::find_if(rows_.begin(), rows_.end(), is_it) - rows_.begin());
  for (Group& group : groups_) group.num_without -= HasAny(group, row) ? 0 : 1;
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  ranks_.Erase(row);
  if (rank < rows_.size()) ShiftFrom(static_cast<double>(rank + 1), -1.0, ranks_);
  for (Axis& held : axes_) {
    std::visit([=](auto& axis) { axis.Erase(row, rank); }, held);
  }
}

auto ParzenEstimator::KeyOf(const Row& row) const {
  constexpr uint64_t kAfterAll = std::numeric_limits<uint64_t>::max();
  return std::pair(row.number < settled_ ? row.place : kAfterAll, row.number);
}

// Where a row is, or belongs.
size_t ParzenEstimator::FindRow(const Row& row) const {
  const auto found =
      std::lower_bound(rows_.begin(), rows_.end(), row,
                       [this](const Row& a, const Row& b) { return KeyOf(a) < KeyOf(b); });
  return static_cast<size_t>(found - rows_.begin());
}

// The newest are not settled one by one, as that moves most of memory: some hundredths at a time.
void ParzenEstimator::Settle() {
  constexpr uint64_t kLeastStep = 64;
  if (order_ == RowOrder::kByAge || numbers_.empty() || numbers_.back() < 0) return;
  const uint64_t newest = static_cast<uint64_t>(numbers_.back());
  const uint64_t step = std::max(kLeastStep, std::bit_floor(newest / 32));
  const int64_t settled = static_cast<int64_t>(newest / step * step);
  if (settled == settled_) return;
  settled_ = settled;
  std::vector<uint32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return KeyOf(rows_[a]) < KeyOf(rows_[b]); });
  rows_ = Permuted(rows_, order);
  ranks_.Permute(order);
  for (Axis& held : axes_) {
    std::visit([&order](auto& axis) { axis.Permute(order); }, held);
  }
}

bool ParzenEstimator::RowHas(size_t row, size_t axis) const {
  return std::visit([row](const auto& held) { return held.Has(row); }, axes_[axis]);
}

bool ParzenEstimator::HasAny(const Group& group, size_t row) const {
  return std::any_of(group.axes.begin(), group.axes.end(),
                     [this, row](size_t axis) { return RowHas(row, axis); });
}

void ParzenEstimator::Refit() {
  Settle();
  ramp_ = RecencyRamp::Of(numbers_.size());
  given_.Resize(0);
  RefitAxes();
}

void ParzenEstimator::Refit(std::span<const double> weights) {
  HPO_CHECK(weights.size() == numbers_.size());
  Settle();
  ramp_ = RecencyRamp::OfWeights();
  given_.Resize(weights.size());
  for (size_t row = 0; row < weights.size(); ++row) {
    given_[row] = weights[static_cast<size_t>(ranks_[row])];
  }
  RefitAxes();
}

void ParzenEstimator::RefitAxes() {
  const RowWeights now = weights();
  total_weight_ = SumWeights(now.taken(), ramp_);
  for (Axis& held : axes_) {
    std::visit([&now](auto& axis) { axis.Refit(now); }, held);
  }
  for (Group& group : groups_) {
    group.weight_without = 0.0;
    if (group.num_without == 0) continue;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (!HasAny(group, row)) group.weight_without += ramp_.Weight(now.taken()[row]);
    }
  }
}

double ParzenEstimator::LogPriorFloor(size_t axis, const Coordinate& coordinate) const {
  if (const auto* choices = std::get_if<ChoiceAxis>(&axes_[axis])) return choices->LogPrior();
  if (std::holds_alternative<GridAxis>(axes_[axis])) {
    return GridAxis::LogPriorFloor(coordinate.cell);
  }
  return ContinuousAxis::LogPrior(coordinate.at);
}

double ParzenEstimator::LogPeak(size_t axis) const {
  return std::visit([](const auto& held) { return held.LogPeak(); }, axes_[axis]);
}

// By how much the logarithm of a component must be below the prior's for all of them to be left
// out.
double ParzenEstimator::LogMargin() const {
  constexpr double kLogPrecision = 36.74;  // of 2^53
  return kLogPrecision + Log(static_cast<double>(num_components())) - Log(prior_weight_);
}

void ParzenEstimator::FillTables(Evaluation& evaluation) const {
  double peaks = 0.0;
  for (size_t axis = 0; axis < axes_.size(); ++axis) peaks += LogPeak(axis);
  double lowest = 0.0;
  for (const Point& point : evaluation.points) {
    double log_prior = 0.0;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (point[axis].present) log_prior += LogPriorFloor(axis, point[axis]);
    }
    lowest = std::min(lowest, log_prior);
  }
  // A kernel has no more than 1.47 exp(-z^2 / 2) of its mass z bandwidths from its centre.
  const double reach = std::sqrt(2.0 * (0.4 + LogMargin() + peaks - lowest));
  evaluation.tables.resize(axes_.size());
  evaluation.table_of.resize(axes_.size());
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (std::holds_alternative<ContinuousAxis>(axes_[axis])) continue;
    std::vector<KernelTable>& tables = evaluation.tables[axis];
    std::vector<size_t>& table_of = evaluation.table_of[axis];
    for (const Point& point : evaluation.points) {
      const Coordinate& here = point[axis];
      const auto same = std::find_if(tables.begin(), tables.end(),
                                     [&](const KernelTable& table) { return table.at == here.at; });
      table_of.push_back(static_cast<size_t>(same - tables.begin()));
      if (!here.present || same != tables.end()) continue;
      if (const auto* grid = std::get_if<GridAxis>(&axes_[axis])) {
        tables.push_back(grid->TableAt(here, reach, {ramp_, prior_weight_}));
      } else {
        tables.push_back(
            std::get<ChoiceAxis>(axes_[axis]).TableAt(here.at, {ramp_, prior_weight_}));
      }
    }
  }
}

void ParzenEstimator::AddMarginals(Evaluation& evaluation, std::span<const double> shares) const {
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    std::vector<size_t> with_axis;
    std::vector<double> positions;
    for (size_t i = 0; i < evaluation.points.size(); ++i) {
      if (!evaluation.points[i][axis].present) continue;
      with_axis.push_back(i);
      positions.push_back(evaluation.points[i][axis].at);
    }
    const auto* continuous = std::get_if<ContinuousAxis>(&axes_[axis]);
    std::vector<double> marginals;
    if (continuous != nullptr) {
      marginals = continuous->LogMarginals(positions, {ramp_, prior_weight_});
    } else {
      for (const size_t i : with_axis) {
        marginals.push_back(evaluation.TableAt(axis, i).log_marginal);
      }
    }
    for (size_t i = 0; i < with_axis.size(); ++i) {
      evaluation.logs[with_axis[i]] += shares[axis] * marginals[i];
    }
  }
}

void ParzenEstimator::AddJoint(const Group& group, Evaluation& evaluation) const {
  const double margin = LogMargin();
  std::vector<JointAxis> axes;  // in the order of the group's, as all below
  std::vector<double> peaks;
  for (const size_t axis : group.axes) {
    axes.push_back(std::visit([](const auto& held) { return held.joint(); }, axes_[axis]));
    peaks.push_back(LogPeak(axis));
  }
  std::vector<JointPoint> points(evaluation.points.size());
  std::vector<JointTerm> terms(points.size() * axes.size());
  std::vector<double> log_priors(points.size(), 0.0);
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = evaluation.points[i];
    JointTerm* const first = terms.data() + i * axes.size();
    JointTerm* last = first;
    for (size_t k = 0; k < axes.size(); ++k) {
      const Coordinate& here = point[group.axes[k]];
      if (!here.present) continue;
      const bool tabled = axes[k].kernel != nullptr;
      const double* table = tabled ? evaluation.TableAt(group.axes[k], i).logs() : nullptr;
      log_priors[i] += tabled ? table[0] : ContinuousAxis::LogPrior(here.at);
      *last++ = {.axis = axes[k], .at = here.at, .table = table};
    }
    points[i] = {
        .terms = first, .num_terms = static_cast<size_t>(last - first), .reference = log_priors[i]};
    // From the last term backwards: what the axes after it may still add.
    double limit = log_priors[i] - margin;
    for (size_t k = axes.size(); k-- > 0;) {
      if (!point[group.axes[k]].present) continue;
      (--last)->limit = limit;
      limit -= peaks[k];
    }
    // `limit` is now what the peaks of all axes must be above less half the squares.
    points[i].most_squares = -2.0 * limit;
  }
  SumJoint(weights().taken(), ramp_, points);
  // An observation without the axes has the prior's kernel in the sum, which is taken back.
  const double log_total = Log(total_weight_ - group.weight_without + prior_weight_);
  for (size_t i = 0; i < points.size(); ++i) {
    const double of_prior =
        (prior_weight_ - group.weight_without) * Exp(log_priors[i] - points[i].reference);
    const double log_sum = Log(points[i].sum.Total() + of_prior);
    evaluation.logs[i] += points[i].reference + log_sum - log_total;
  }
}

std::vector<double> ParzenEstimator::LogDensities(std::span<const Point> points,
                                                  Dependence dependence) const {
  Evaluation evaluation;
  evaluation.points = points;
  evaluation.logs.resize(points.size());
  FillTables(evaluation);
  if (dependence != Dependence::kIndependent) {
    for (const Group& group : groups_) AddJoint(group, evaluation);
  }
  if (dependence == Dependence::kBoth) AddMarginals(evaluation, marginal_shares_);
  if (dependence == Dependence::kIndependent) {
    AddMarginals(evaluation, std::vector<double>(axes_.size(), 1.0));
  }
  return std::move(evaluation.logs);
}

void ParzenEstimator::PrepareDraws() {
  const PaddedColumn<double>& taken = weights().taken();
  const auto fill = [this, &taken](std::vector<double>& sums, const auto& counts) {
    sums.clear();
    double sum = 0.0;
    for (size_t row = 0; row < numbers_.size(); ++row) {
      if (counts(row)) sum += ramp_.Weight(taken[row]);
      sums.push_back(sum);
    }
    sums.push_back(sum + prior_weight_);
  };
  cumulative_.resize(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i) {
    std::visit(
        [&](const auto& axis) {
          fill(cumulative_[i], [&axis](size_t row) { return axis.Has(row); });
        },
        axes_[i]);
  }
}

size_t ParzenEstimator::DrawComponent(size_t axis, Rng& rng) const {
  return DrawByWeight(cumulative_[axis], rng);
}

bool ParzenEstimator::HasAxis(size_t component, size_t axis) const {
  return component == num_observations() || RowHas(component, axis);
}

double ParzenEstimator::DrawPosition(size_t component, size_t axis, Interval within,
                                     Rng& rng) const {
  NormalKernel kernel;
  if (component < num_observations()) {
    const auto* continuous = std::get_if<ContinuousAxis>(&axes_[axis]);
    kernel = continuous != nullptr ? continuous->KernelOf(component)
                                   : std::get<GridAxis>(axes_[axis]).KernelOf(component);
  }
  const double z =
      TruncatedNormalQuantile(rng.Uniform(), (within.low - kernel.centre) / kernel.bandwidth,
                              (within.high - kernel.centre) / kernel.bandwidth);
  return std::clamp(kernel.centre + z * kernel.bandwidth, within.low, within.high);
}

size_t ParzenEstimator::DrawChoice(size_t component, size_t axis, std::span<const size_t> allowed,
                                   Rng& rng) const {
  const ChoiceAxis& choices = std::get<ChoiceAxis>(axes_[axis]);
  const size_t row = component < num_observations() ? component : ChoiceAxis::kNoRow;
  double total = 0.0;
  for (const size_t choice : allowed) total += choices.Probability(row, choice);
  const double draw = rng.Uniform() * total;
  double sum = 0.0;
  for (const size_t choice : allowed) {
    sum += choices.Probability(row, choice);
    if (sum > draw) return choice;
  }
  return allowed.back();
}

}  // namespace hpo::sampler
