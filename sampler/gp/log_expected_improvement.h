// Logarithms of expected improvement and of the normal distribution, accurate where the numbers
// themselves are zero. With h(z) = phi(z) + z Phi(z), the expected improvement of a normal with
// mean m and deviation s over a best value b is s h((b - m) / s), for smaller is better.
// Source: Ament et al. 2023 (arXiv:2310.20708); the tail by Laplace's continued fraction of the
// Mills ratio instead of erfcx. Same result on every machine. Pure; safe from any thread.
// Golden data: scripts/reference/gaussian_process.py (mpmath).
#pragma once

namespace hpo::sampler {

struct ValueAndSlope {
  double value = 0.0;
  double slope = 0.0;
};

// ln h(z) and its derivative Phi(z) / h(z). z is finite.
ValueAndSlope LogImprovement(double z);

// ln Phi(z) and its derivative phi(z) / Phi(z). z is finite.
ValueAndSlope LogProbability(double z);

}  // namespace hpo::sampler
