// What a study's losses have in common with an earlier study's: the posterior mean m(x) of the
// earlier one, times a weight. The process of the study itself is over what that leaves,
//   y(x) = weight * m(x) + process(x),
// so that it corrects the earlier study where its own trials say otherwise.
// Source: the linear model of Kennedy & O'Hagan 2000 between two levels; the weight is not fitted
// with the kernel but measured by ranks (PriorWorth), which a few odd losses do not move.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sampler/gp/surrogate/posterior.h"
#include "sampler/gp/surrogate/surrogate_cache.h"
#include "sampler/priors/prior_study.h"

namespace hpo::sampler {

struct Trend {
  Posterior posterior;  // of the earlier study's losses, brought to mean 0 and variance 1
  double weight = 0.0;
  PriorVote vote;

  // Smaller is better. `slopes` may be null.
  double At(std::span<const double> x, std::vector<double>* slopes) const;
};

// Of the posteriors of earlier studies (nullopt: one that teaches nothing here) the one whose mean
// orders `fitted` best, weighted by that; nullopt where none does.
std::optional<Trend> ChooseTrend(const std::vector<std::optional<Posterior>>& priors,
                                 const LabelledPoints& fitted);

// Takes the trend off the values and brings what is left to mean 0 and variance 1. Returns the
// deviation it had.
double TakeOff(const Trend& trend, LabelledPoints& observed);

}  // namespace hpo::sampler
