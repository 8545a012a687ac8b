#include "sampler/numeric/truncated_normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
constexpr double kLogHalf = -0.69314718055994530942;

// Erfc() is normal and accurate down to here; below, the asymptotic series takes over.
constexpr double kSeriesBelow = -30.0;
// Intervals narrower than this (in units of 1 / (1 + |midpoint|)) are integrated by the midpoint
// rule with its second-order correction; the next term is below 1e-15.
constexpr double kNarrow = 1e-3;

double LowerTail(double x) { return 0.5 * Erfc(-x / std::numbers::sqrt2); }

// Phi(x) = phi(x)/|x| * (1 - 1/x^2 + 3/x^4 - 15/x^6 + ...) for x far below zero.
double LogCdfBySeries(double x) {
  const double inverse_square = 1.0 / (x * x);
  double term = 1.0;
  double sum = 0.0;
  for (int k = 1; k <= 8; ++k) {
    term *= -(2.0 * k - 1.0) * inverse_square;
    sum += term;
  }
  return LogNormalDensity(x) - Log(-x) + Log1p(sum);
}

// ln(1 - exp(x)) for x < 0.
double LogOneMinusExp(double x) { return x < kLogHalf ? Log1p(-Exp(x)) : Log(-Expm1(x)); }

double LogMassOfNarrow(double low, double high) {
  const double width = high - low;
  const double middle = 0.5 * (low + high);
  const double correction = (middle * middle - 1.0) * width * width / 24.0;
  return LogNormalDensity(middle) + Log(width) + Log1p(correction);
}

bool IsNarrow(double low, double high) {
  return (high - low) * (1.0 + std::abs(0.5 * (low + high))) < kNarrow;
}

double MassOfNarrow(double low, double high) {
  const double width = high - low;
  const double middle = 0.5 * (low + high);
  const double square = middle * middle;
  return Exp(-0.5 * square) * (width * kInverseSqrtTwoPi) *
         (1.0 + (square - 1.0) * width * width / 24.0);
}

// Whether no double lies between 1 and the mass.
bool IsAllOfIt(double low, double high) { return low < -8.3 && high > 8.3; }

// Of two polynomials of the seventh degree, constants first.
double Ratio(const double (&numerator)[8], const double (&denominator)[8], double x) {
  double above = numerator[7];
  double below = denominator[7];
  for (int i = 6; i >= 0; --i) {
    above = above * x + numerator[i];
    below = below * x + denominator[i];
  }
  return above / below;
}

HPO_PORTABLE Lanes MassesOfWide(const Lanes& a, const Lanes& b) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  const auto mirrored = 0.0 < a;
  const Lanes low = Where(mirrored, -b, a);
  const Lanes high = Where(mirrored, -a, b);
  const Lanes below = Erfc(low * -kSqrtHalf) * 0.5;
  const auto right = 0.0 < high;
  const Lanes beyond = Erfc(Where(right, high, -high) * kSqrtHalf) * 0.5;
  return Where(right, (1.0 - below) - beyond, beyond - below);
}

// The density's Taylor series around the middle, whose even derivatives are Hermite's polynomials
// times the density, integrated: what follows the tenth is below 1e-13 of the mass.
HPO_PORTABLE Lanes MassesOfNarrow(const Lanes& width, const Lanes& middle) {
  const Lanes s = middle * middle;
  const Lanes w = width * width * 0.25;
  const Lanes h2 = s - 1.0;
  const Lanes h4 = (s - 6.0) * s + 3.0;
  const Lanes h6 = ((s - 15.0) * s + 45.0) * s - 15.0;
  const Lanes h8 = (((s - 28.0) * s + 210.0) * s - 420.0) * s + 105.0;
  const Lanes h10 = ((((s - 45.0) * s + 630.0) * s - 3150.0) * s + 4725.0) * s - 945.0;
  Lanes sum = w * h10 * (1.0 / 39916800.0) + h8 * (1.0 / 362880.0);
  sum = sum * w + h6 * (1.0 / 5040.0);
  sum = sum * w + h4 * (1.0 / 120.0);
  sum = sum * w + h2 * (1.0 / 6.0);
  return ExpDown(s * -0.5) * (width * kInverseSqrtTwoPi) * (sum * w + 1.0);
}

}  // namespace

double LogAddExp(double a, double b) {
  const double larger = std::max(a, b);
  if (std::isinf(larger)) return larger;
  return larger + Log1p(Exp(std::min(a, b) - larger));
}

double LogNormalCdf(double x) {
  if (x > -1.0) return Log1p(-LowerTail(-x));
  if (x > kSeriesBelow) return Log(LowerTail(x));
  return std::isinf(x) ? -kUnbounded : LogCdfBySeries(x);
}

double LogNormalMass(double low, double high) {
  if (!(low < high)) return -kUnbounded;
  // Mirrored, so that the interval reaches no further right than left.
  if (low > 0.0) return LogNormalMass(-high, -low);
  if (IsNarrow(low, high)) return LogMassOfNarrow(low, high);
  if (high > 0.0) return Log1p(-LowerTail(low) - LowerTail(-high));
  const double log_high = LogNormalCdf(high);
  return log_high + LogOneMinusExp(LogNormalCdf(low) - log_high);
}

double NormalMass(double low, double high) {
  if (!(low < high)) return 0.0;
  if (low > 0.0) return NormalMass(-high, -low);
  if (IsAllOfIt(low, high)) return 1.0;
  if (IsNarrow(low, high)) return MassOfNarrow(low, high);
  if (high > 0.0) return (1.0 - LowerTail(low)) - LowerTail(-high);
  return LowerTail(high) - LowerTail(low);
}

Lanes NormalMasses(const Lanes& a, const Lanes& b) {
  constexpr double kNarrowLanes = 0.5;
  const Lanes width = b - a;
  const Lanes middle = (a + b) * 0.5;
  const Lanes extent = width * (Where(middle < 0.0, -middle, middle) + 1.0);
  if (Largest(extent) < kNarrowLanes) return MassesOfNarrow(width, middle);
  const Lanes wide = MassesOfWide(a, b);
  if (Smallest(extent) >= kNarrowLanes) return wide;
  return Where(extent < kNarrowLanes, MassesOfNarrow(width, middle), wide);
}

double NormalQuantileOfLog(double log_probability) {
  if (log_probability >= 0.0) return kUnbounded;
  if (std::isinf(log_probability)) return -kUnbounded;
  if (log_probability > kLogHalf) return -NormalQuantileOfLog(LogOneMinusExp(log_probability));
  double x = log_probability < -5.0
                 ? -std::sqrt(-2.0 * (log_probability + kLogSqrtTwoPi))
                 : -Log(Expm1(-log_probability)) * std::numbers::sqrt3 / std::numbers::pi;
  // ln Phi is concave: from the second iterate on, Newton's method climbs to the root from below.
  constexpr int kMaxIterations = 100;
  for (int i = 0; i < kMaxIterations; ++i) {
    const double log_cdf = LogNormalCdf(x);
    const double step = (log_cdf - log_probability) * Exp(log_cdf - LogNormalDensity(x));
    x -= step;
    if (std::abs(step) <= 1e-14 * std::abs(x)) break;
  }
  return x;
}

// Source: Wichura 1988, algorithm AS 241 (PPND16), exact to about 1e-16.
double LowerNormalQuantile(double probability) {
  const double from_middle = probability - 0.5;
  if (from_middle > -0.425) {
    constexpr double kNumerator[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                     1.9715909503065514427e3, 1.3731693765509461125e4,
                                     4.5921953931549871457e4, 6.7265770927008700853e4,
                                     3.3430575583588128105e4, 2.5090809287301226727e3};
    constexpr double kDenominator[] = {1.0,
                                       4.2313330701600911252e1,
                                       6.8718700749205790830e2,
                                       5.3941960214247511077e3,
                                       2.1213794301586595867e4,
                                       3.9307895800092710610e4,
                                       2.8729085735721942674e4,
                                       5.2264952788528545610e3};
    return from_middle * Ratio(kNumerator, kDenominator, 0.180625 - from_middle * from_middle);
  }
  const double root = std::sqrt(-Log(probability));
  if (root <= 5.0) {
    constexpr double kNumerator[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
    constexpr double kDenominator[] = {1.0,
                                       2.05319162663775882187e0,
                                       1.67638483018380384940e0,
                                       6.89767334985100004550e-1,
                                       1.48103976427480074590e-1,
                                       1.51986665636164571966e-2,
                                       5.47593808499534494600e-4,
                                       1.05075007164441684324e-9};
    return -Ratio(kNumerator, kDenominator, root - 1.6);
  }
  constexpr double kNumerator[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                   1.78482653991729133580e0,  2.96560571828504891230e-1,
                                   2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kDenominator[] = {1.0,
                                     5.99832206555887937690e-1,
                                     1.36929880922735805310e-1,
                                     1.48753612908506148525e-2,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};
  return -Ratio(kNumerator, kDenominator, root - 5.0);
}

double TruncatedNormalQuantile(double q, double low, double high) {
  if (low > 0.0) return -TruncatedNormalQuantile(1.0 - q, -high, -low);
  constexpr double kLeast = 1e-280;
  const double below_low = LowerTail(low);
  const bool wide = high > 0.0 && !IsAllOfIt(low, high) && !IsNarrow(low, high);
  double above_high = wide ? LowerTail(-high) : 0.0;
  const double mass = wide ? (1.0 - below_low) - above_high : NormalMass(low, high);
  const double below = below_low + q * mass;
  if (mass > kLeast && below > kLeast) {
    if (below <= 0.5) return std::clamp(LowerNormalQuantile(below), low, high);
    if (!wide) above_high = LowerTail(-high);
    return std::clamp(-LowerNormalQuantile(above_high + (1.0 - q) * mass), low, high);
  }
  const double log_below = LogAddExp(LogNormalCdf(low), Log(q) + LogNormalMass(low, high));
  return std::clamp(NormalQuantileOfLog(log_below), low, high);
}

}  // namespace hpo::sampler
