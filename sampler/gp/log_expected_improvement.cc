#include "sampler/gp/log_expected_improvement.h"

#include <cmath>

#include "sampler/numeric/packet_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

// Left of here the continued fraction is exact to double precision; right of it the series is, and
// its differences lose two digits at most.
constexpr double kTailBelow = -2.25;
// Terms that the fraction needs: so many over the square of the argument, and a few.
constexpr double kTermsBySquare = 520.0;
constexpr int kLeastTerms = 6;

// With t = -z > 0: Phi(z) / phi(z) = 1 / (t + excess), excess = 1 / (t + 2 / (t + 3 / (t + ...))).
double MillsExcess(double t) {
  const int terms = kLeastTerms + static_cast<int>(kTermsBySquare / (t * t));
  double fraction = t;
  for (int k = terms; k >= 2; --k) fraction = t + k / fraction;
  return 1.0 / fraction;
}

// (Phi(z) - 1/2) / phi(z) = z + z^3/3 + z^5/15 + ..., for |z| up to a few.
double CentralSeries(double z) {
  double term = z;
  double sum = z;
  for (int k = 3; std::abs(term) > 1e-18 * std::abs(sum); k += 2) {
    term *= z * z / k;
    sum += term;
  }
  return sum;
}

// Phi(z) right of the tail.
double Probability(double z) {
  constexpr double kMirrorFrom = 2.5;
  if (z < kMirrorFrom) return 0.5 + PortableExp(LogNormalDensity(z)) * CentralSeries(z);
  return 1.0 - PortableExp(LogNormalDensity(z)) / (z + MillsExcess(z));
}

}  // namespace

ValueAndSlope LogImprovement(double z) {
  if (z < kTailBelow) {
    const double excess = MillsExcess(-z);
    // h = phi (1 - t / (t + excess)).
    return {LogNormalDensity(z) + PortableLog(excess / (excess - z)), 1.0 / excess};
  }
  const double probability = Probability(z);
  const double improvement = PortableExp(LogNormalDensity(z)) + z * probability;
  return {PortableLog(improvement), probability / improvement};
}

ValueAndSlope LogProbability(double z) {
  if (z < kTailBelow) {
    const double inverse_mills = MillsExcess(-z) - z;
    return {LogNormalDensity(z) - PortableLog(inverse_mills), inverse_mills};
  }
  const double probability = Probability(z);
  return {PortableLog(probability), PortableExp(LogNormalDensity(z)) / probability};
}

}  // namespace hpo::sampler
