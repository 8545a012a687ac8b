#include "sampler/gaussian_process/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "sampler/gaussian_process/portable_math.h"

namespace hpo {
namespace {

constexpr double kLeastPower = -4.0;
constexpr double kMostPower = 2.0;
constexpr int kPowers = 61;  // a tenth apart

double LogOnePlus(double x) { return PortableLog(1.0 + x); }

// Median 0 and the best at -1, where the median is above the best; a few enormous values move
// neither.
void CenterOnMedian(std::vector<double>& values) {
  if (values.empty()) return;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const double scale = median - sorted.front();
  if (!(scale > 1e-14 * std::abs(median))) return;
  for (double& value : values) value = (value - median) / scale;
}

// Of the power, for standardised values taken as normal after the transformation.
double LogLikelihood(const std::vector<double>& values, double power) {
  const double count = static_cast<double>(values.size());
  double sum = 0.0;
  double squares = 0.0;
  double log_slopes = 0.0;
  for (const double value : values) {
    const double bent = YeoJohnson(value, power);
    sum += bent;
    squares += bent * bent;
    const double log_slope = LogOnePlus(std::abs(value));
    log_slopes += value < 0.0 ? -log_slope : log_slope;
  }
  const double variance = squares / count - (sum / count) * (sum / count);
  return -0.5 * count * PortableLog(std::max(variance, 1e-300)) + (power - 1.0) * log_slopes;
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

double YeoJohnson(double value, double power) {
  if (value < 0.0) return -YeoJohnson(-value, 2.0 - power);
  const double logarithm = LogOnePlus(value);
  if (power == 0.0) return logarithm;
  return (PortableExp(power * logarithm) - 1.0) / power;
}

std::vector<double> NormalizeLosses(std::span<const double> losses) {
  std::vector<double> values(losses.begin(), losses.end());
  Standardize(values);
  CenterOnMedian(values);
  double best_power = 1.0;
  double best = LogLikelihood(values, best_power);
  for (int i = 0; i < kPowers; ++i) {
    const double power =
        kLeastPower + (kMostPower - kLeastPower) * static_cast<double>(i) / (kPowers - 1);
    const double likelihood = LogLikelihood(values, power);
    if (!(likelihood > best)) continue;
    best = likelihood;
    best_power = power;
  }
  for (double& value : values) value = YeoJohnson(value, best_power);
  Standardize(values);
  return values;
}

}  // namespace hpo
