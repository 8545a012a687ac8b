#include "sampler/tpe/parzen_estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

using Kind = ParzenAxis::Kind;

// Index of the interval of `cumulative` (increasing) that holds a uniform draw.
size_t DrawByWeight(const std::vector<double>& cumulative, Rng& rng) {
  const double draw = rng.Uniform() * cumulative.back();
  const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), draw);
  return std::min(static_cast<size_t>(found - cumulative.begin()), cumulative.size() - 1);
}

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<ParzenAxis> axes, double prior_weight, RowOrder order)
    : rows_(order == RowOrder::kByPlace) {
  mixture_.prior_weight = prior_weight;
  for (const ParzenAxis& axis : axes) {
    mixture_.marginal_shares.push_back(axis.marginal_share);
    if (axis.kind == Kind::kContinuous) continuous_.push_back(mixture_.axes.size());
    mixture_.groups.resize(std::max(mixture_.groups.size(), axis.group + 1));
    switch (axis.kind) {
      case Kind::kContinuous:
        mixture_.axes.emplace_back(ContinuousAxis());
        break;
      case Kind::kGrid:
        mixture_.axes.emplace_back(GridAxis());
        break;
      case Kind::kCategorical:
        mixture_.axes.emplace_back(ChoiceAxis(axis.num_choices, prior_weight));
        break;
    }
  }
  for (const bool continuous : {true, false}) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if ((axes[i].kind == Kind::kContinuous) != continuous) continue;
      mixture_.groups[axes[i].group].axes.push_back(i);
    }
  }
  Refit();
  PrepareDraws();
}

uint64_t ParzenEstimator::PlaceOf(const Point& point) const {
  std::vector<Coordinate> coordinates;
  for (const size_t axis : continuous_) coordinates.push_back(point[axis]);
  return hpo::sampler::PlaceOf(coordinates);
}

void ParzenEstimator::Insert(int64_t number, const Point& point) {
  const auto [row, rank] = rows_.Insert(number, PlaceOf(point));
  for (size_t i = 0; i < point.size(); ++i) {
    std::visit([&, row = row, rank = rank](auto& axis) { axis.Insert(row, rank, point[i]); },
               mixture_.axes[i]);
  }
  for (auto& group : mixture_.groups) group.num_without += mixture_.HasAny(group, row) ? 0 : 1;
}

void ParzenEstimator::Erase(int64_t number) {
  const auto [row, rank] = rows_.Erase(number);
  for (auto& group : mixture_.groups) group.num_without -= mixture_.HasAny(group, row) ? 0 : 1;
  for (auto& held : mixture_.axes) {
    std::visit([row = row, rank = rank](auto& axis) { axis.Erase(row, rank); }, held);
  }
}

void ParzenEstimator::Refit() {
  Settle();
  mixture_.ramp = RecencyRamp::Of(rows_.size());
  given_.Resize(0);
  RefitAxes();
}

void ParzenEstimator::Refit(std::span<const double> weights) {
  HPO_CHECK(weights.size() == rows_.size());
  Settle();
  mixture_.ramp = RecencyRamp::OfWeights();
  given_.Resize(weights.size());
  for (size_t row = 0; row < weights.size(); ++row) {
    given_[row] = weights[static_cast<size_t>(rows_.ranks()[row])];
  }
  RefitAxes();
}

void ParzenEstimator::Settle() {
  const std::vector<uint32_t> order = rows_.Settle();
  if (order.empty()) return;
  for (auto& held : mixture_.axes) {
    std::visit([&order](auto& axis) { axis.Permute(order); }, held);
  }
}

void ParzenEstimator::RefitAxes() {
  const RowWeights now = weights();
  mixture_.total_weight = SumWeights(now.taken(), now.ramp);
  for (auto& held : mixture_.axes) {
    std::visit([&now](auto& axis) { axis.Refit(now); }, held);
  }
  for (auto& group : mixture_.groups) {
    group.weight_without = 0.0;
    if (group.num_without == 0) continue;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (!mixture_.HasAny(group, row)) group.weight_without += now.ramp.Weight(now.taken()[row]);
    }
  }
}

void ParzenEstimator::PrepareDraws() {
  const PaddedColumn<double>& taken = weights().taken();
  const auto fill = [this, &taken](std::vector<double>& sums, const auto& counts) {
    sums.clear();
    double sum = 0.0;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (counts(row)) sum += mixture_.ramp.Weight(taken[row]);
      sums.push_back(sum);
    }
    sums.push_back(sum + mixture_.prior_weight);
  };
  cumulative_.resize(mixture_.axes.size());
  for (size_t i = 0; i < mixture_.axes.size(); ++i) {
    std::visit(
        [&](const auto& axis) {
          fill(cumulative_[i], [&axis](size_t row) { return axis.Has(row); });
        },
        mixture_.axes[i]);
  }
}

size_t ParzenEstimator::DrawComponent(size_t axis, Rng& rng) const {
  return DrawByWeight(cumulative_[axis], rng);
}

bool ParzenEstimator::HasAxis(size_t component, size_t axis) const {
  return component == num_observations() || mixture_.HasAxis(component, axis);
}

double ParzenEstimator::DrawPosition(size_t component, size_t axis, Interval within,
                                     Rng& rng) const {
  NormalKernel kernel;
  if (component < num_observations()) {
    const auto* continuous = std::get_if<ContinuousAxis>(&mixture_.axes[axis]);
    kernel = continuous != nullptr ? continuous->KernelOf(component)
                                   : std::get<GridAxis>(mixture_.axes[axis]).KernelOf(component);
  }
  const double z =
      TruncatedNormalQuantile(rng.Uniform(), (within.low - kernel.centre) / kernel.bandwidth,
                              (within.high - kernel.centre) / kernel.bandwidth);
  return std::clamp(kernel.centre + z * kernel.bandwidth, within.low, within.high);
}

size_t ParzenEstimator::DrawChoice(size_t component, size_t axis, std::span<const size_t> allowed,
                                   Rng& rng) const {
  const ChoiceAxis& choices = std::get<ChoiceAxis>(mixture_.axes[axis]);
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
