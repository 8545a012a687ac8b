// Probabilities of the standard normal distribution, in log space accurate deep in the tails where
// differences of the distribution function itself are zero. The same bits on every machine
// (portable_math.h). Pure; safe from any thread.
// Golden data: scripts/reference/parzen.py (SciPy's log_ndtr, ndtri_exp and truncnorm).
#pragma once

#include "sampler/numeric/lanes.h"

namespace hpo::sampler {

inline constexpr double kLogSqrtTwoPi = 0.91893853320467274178;

// ln phi(x).
inline double LogNormalDensity(double x) { return -0.5 * x * x - kLogSqrtTwoPi; }

// ln(exp(a) + exp(b)) without overflow; -infinity when both are.
double LogAddExp(double a, double b);

// ln Phi(x). -infinity at -infinity, 0 at +infinity.
double LogNormalCdf(double x);

// Phi(high) - Phi(low), accurate in relative terms down to 1e-300; 0 unless low < high.
double NormalMass(double low, double high);

// The same for eight intervals, low < high, to 1e-13 of each.
Lanes NormalMasses(const Lanes& low, const Lanes& high);

// ln(Phi(high) - Phi(low)); -infinity unless low < high. Ends may be infinite.
double LogNormalMass(double low, double high);

// The x with ln Phi(x) = log_probability, for log_probability <= 0.
double NormalQuantileOfLog(double log_probability);

// The x with Phi(x) = probability, for a probability in [1e-300, 0.5].
double LowerNormalQuantile(double probability);

// The q-quantile of the standard normal truncated to [low, high]; q in [0, 1], low <= high.
double TruncatedNormalQuantile(double q, double low, double high);

}  // namespace hpo::sampler
