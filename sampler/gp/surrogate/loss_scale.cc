#include "sampler/gp/surrogate/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampler/numeric/packet_math.h"

namespace hpo::sampler {
namespace {

constexpr size_t kFirstLosses = 10;
// No distance is more than this many spreads.
constexpr double kFurthest = 1e300;

constexpr double kLeastLossGain = 1e-3;

// A quarter of a loss, so that no difference overflows.
double Quarter(double loss) { return 0.25 * loss; }

LossReference ReferenceOfSorted(const std::vector<double>& losses) {
  if (losses.empty()) return {};
  auto middle = losses.begin() + static_cast<ptrdiff_t>(losses.size() / 2);
  if (*middle == losses.front()) middle = std::upper_bound(middle, losses.end(), losses.front());
  if (middle == losses.end()) return {.middle = losses.front()};
  return {*middle, Quarter(*middle) - Quarter(losses.front())};
}

}  // namespace

// Scaled first, so that nothing overflows.
double Standardize(std::vector<double>& values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (largest > 0.0) {
    for (double& value : values) value /= largest;
  }
  const double count = static_cast<double>(values.size());
  double mean = 0.0;
  for (const double value : values) mean += value / count;
  double variance = 0.0;
  for (const double value : values) variance += (value - mean) * (value - mean) / count;
  const double deviation = std::sqrt(variance);
  constexpr double kRounding = 1e-14;
  for (double& value : values) {
    value = deviation > kRounding ? (value - mean) / deviation : 0.0;
  }
  return deviation * largest;
}

// By the nearest loss that is a twentieth of a step away, or else the furthest.
double LossPerStep(std::span<const double> losses, std::span<const double> normalized) {
  constexpr double kNear = 0.05;
  if (losses.empty()) return 0.0;
  const size_t best =
      static_cast<size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
  double step = 0.0;
  double change = 0.0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double distance = normalized[i] - normalized[best];
    const bool better = step < kNear ? distance > step : distance >= kNear && distance < step;
    if (!better) continue;
    step = distance;
    change = losses[i] - losses[best];
  }
  return step > 0.0 ? change / step : 0.0;
}

bool LossReference::Gains(double loss, double best) const {
  const double ahead = std::max(middle - best, 0.0);
  return loss < best - (std::isfinite(ahead) ? kLeastLossGain * ahead : 0.0);
}

LossReference ReferenceOf(std::span<const double> losses) {
  std::vector<double> sorted;
  for (const double loss : losses) {
    if (std::isfinite(loss)) sorted.push_back(loss);
  }
  std::sort(sorted.begin(), sorted.end());
  return ReferenceOfSorted(sorted);
}

LossReference StartingReference(std::span<const double> losses) {
  std::vector<double> first;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const double loss : losses) {
    if (!std::isfinite(loss)) continue;
    first.push_back(loss);
    least = std::min(least, loss);
    most = std::max(most, loss);
    if (first.size() >= kFirstLosses && least < most) break;
  }
  return ReferenceOf(first);
}

std::vector<double> NormalizeLosses(std::span<const double> losses,
                                    const LossReference& reference) {
  std::vector<double> values(losses.begin(), losses.end());
  if (reference.spread > 0.0) {
    for (double& value : values) {
      const double apart = (Quarter(value) - Quarter(reference.middle)) / reference.spread;
      const double bounded = std::clamp(apart, -kFurthest, kFurthest);
      value = bounded > 0.0 ? PortableLog(1.0 + bounded) : bounded;
    }
  }
  Standardize(values);
  return values;
}

}  // namespace hpo::sampler
