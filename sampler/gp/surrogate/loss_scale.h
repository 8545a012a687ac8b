// Losses brought to mean 0 and variance 1. Those above a reference are bent down by a logarithm, as
// a few enormous losses must not hide the differences between good ones; those below stay as far
// apart as they are. Nothing is steepened near the best: a transformation that is fitted to all
// losses magnifies what is left there the more trials end there, until nothing else looks worth a
// trial. The order of losses stays. Pure; safe from any thread.
#pragma once

#include <span>
#include <vector>

namespace hpo::sampler {

// From where losses are bent, and the unit of the logarithm.
struct LossReference {
  double middle = 0.0;
  double spread = 0.0;  // a quarter of it, which no double is too small for; 0: nothing is bent

  // Whether `loss` is better than `best` by a gain that counts: a thousandth of how far that is
  // ahead of the middle. A study that only creeps gets nowhere.
  bool Gains(double loss, double best) const;
};

// The median of the losses, or the least that is not the best of them, and how far the best is
// below it. Those that are not finite do not count.
LossReference ReferenceOf(std::span<const double> losses);

// Of the first ten losses alone, or of as many as it takes for two to differ: what later ones are
// measured by does not move with them.
LossReference StartingReference(std::span<const double> losses);

// One per loss; all 0 where the losses are equal. Losses are finite.
std::vector<double> NormalizeLosses(std::span<const double> losses, const LossReference& reference);

// Brings values to mean 0 and variance 1, all to 0 where they are equal up to rounding. Returns the
// deviation that they had.
double Standardize(std::vector<double>& values);

// How much of the losses a step of one takes near the least of them, `normalized` being what
// NormalizeLosses made of them. 0 where the losses are equal.
double LossPerStep(std::span<const double> losses, std::span<const double> normalized);

}  // namespace hpo::sampler
