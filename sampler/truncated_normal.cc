#include "sampler/truncated_normal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace hpo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kLogSqrtTwoPi = 0.5 * std::log(2.0 * std::numbers::pi);
const double kLogHalf = std::log(0.5);

// erfc() is normal and accurate down to here; below, the asymptotic series takes over.
constexpr double kSeriesBelow = -30.0;
// Intervals narrower than this (in units of 1 / (1 + |midpoint|)) are integrated by the midpoint
// rule with its second-order correction; the next term is below 1e-15.
constexpr double kNarrow = 1e-3;

double LogDensity(double x) { return -0.5 * x * x - kLogSqrtTwoPi; }

double LowerTail(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Phi(x) = phi(x)/|x| * (1 - 1/x^2 + 3/x^4 - 15/x^6 + ...) for x far below zero.
double LogCdfBySeries(double x) {
  const double inverse_square = 1.0 / (x * x);
  double term = 1.0;
  double sum = 0.0;
  for (int k = 1; k <= 8; ++k) {
    term *= -(2.0 * k - 1.0) * inverse_square;
    sum += term;
  }
  return LogDensity(x) - std::log(-x) + std::log1p(sum);
}

// ln(1 - exp(x)) for x < 0.
double LogOneMinusExp(double x) {
  return x < kLogHalf ? std::log1p(-std::exp(x)) : std::log(-std::expm1(x));
}

double LogMassOfNarrow(double middle, double width) {
  const double correction = (middle * middle - 1.0) * width * width / 24.0;
  return LogDensity(middle) + std::log(width) + std::log1p(correction);
}

}  // namespace

double LogAddExp(double a, double b) {
  const double larger = std::max(a, b);
  if (std::isinf(larger)) return larger;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

double LogNormalCdf(double x) {
  if (x > -1.0) return std::log1p(-LowerTail(-x));
  if (x > kSeriesBelow) return std::log(LowerTail(x));
  return std::isinf(x) ? -kInfinity : LogCdfBySeries(x);
}

double LogNormalMass(double low, double high) {
  if (!(low < high)) return -kInfinity;
  // Mirrored, so that the interval reaches no further right than left.
  if (low > 0.0) return LogNormalMass(-high, -low);
  const double width = high - low;
  const double middle = 0.5 * (low + high);
  if (width * (1.0 + std::abs(middle)) < kNarrow) return LogMassOfNarrow(middle, width);
  if (high > 0.0) return std::log1p(-LowerTail(low) - LowerTail(-high));
  const double log_high = LogNormalCdf(high);
  return log_high + LogOneMinusExp(LogNormalCdf(low) - log_high);
}

double NormalQuantileOfLog(double log_probability) {
  if (log_probability >= 0.0) return kInfinity;
  if (std::isinf(log_probability)) return -kInfinity;
  if (log_probability > kLogHalf) return -NormalQuantileOfLog(LogOneMinusExp(log_probability));
  double x = log_probability < -5.0
                 ? -std::sqrt(-2.0 * (log_probability + kLogSqrtTwoPi))
                 : -std::log(std::expm1(-log_probability)) * std::numbers::sqrt3 / std::numbers::pi;
  // ln Phi is concave: from the second iterate on, Newton's method climbs to the root from below.
  constexpr int kMaxIterations = 100;
  for (int i = 0; i < kMaxIterations; ++i) {
    const double log_cdf = LogNormalCdf(x);
    const double step = (log_cdf - log_probability) * std::exp(log_cdf - LogDensity(x));
    x -= step;
    if (std::abs(step) <= 1e-14 * std::abs(x)) break;
  }
  return x;
}

double TruncatedNormalQuantile(double q, double low, double high) {
  const double log_mass = LogNormalMass(low, high);
  const double log_below = LogAddExp(LogNormalCdf(low), std::log(q) + log_mass);
  if (log_below <= kLogHalf) return std::clamp(NormalQuantileOfLog(log_below), low, high);
  // Measured from the right, where ln Phi would round to zero.
  const double log_above = LogAddExp(LogNormalCdf(-high), std::log1p(-q) + log_mass);
  return std::clamp(-NormalQuantileOfLog(log_above), low, high);
}

}  // namespace hpo
