// Losses brought to mean 0 and variance 1, bent so that they are as close to normal as a power
// transformation makes them: a few enormous losses must not hide the differences between good ones.
// The order of losses stays. Source: Yeo & Johnson 2000, on standardised losses; the power with the
// largest likelihood, as in HEBO (Cowen-Rivers et al. 2022, arXiv:2012.03826).
// Pure; safe from any thread.
#pragma once

#include <span>
#include <vector>

namespace hpo {

// One per loss; all 0 where the losses are equal. Losses are finite.
std::vector<double> NormalizeLosses(std::span<const double> losses);

// Brings values to mean 0 and variance 1, all to 0 where they are equal up to rounding. Returns the
// deviation that they had.
double Standardize(std::vector<double>& values);

// How much of the losses a step of one takes near the least of them, `normalized` being what
// NormalizeLosses made of them. 0 where the losses are equal.
double LossPerStep(std::span<const double> losses, std::span<const double> normalized);

// The Yeo-Johnson transformation; power 1 changes nothing.
double YeoJohnson(double value, double power);

}  // namespace hpo
