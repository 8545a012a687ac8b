// Earlier studies of the same space, from which a sampler starts.
//
// What an earlier study says holds for this one as far as it is measured to: by the rank
// correlation between what its model expects of this study's configurations and what they came to
// (PriorWorth). Losses are never compared across studies, only orders and standardised values:
// another data set's losses have another scale.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sampler/api/sampler.h"

namespace hpo::sampler {

// Of the earlier study that predicts this one best.
struct PriorVote {
  size_t prior = 0;  // index among the priors
  double worth = 0.0;
};

// How far `expected` may be trusted to order `losses`, in [0, 1]: their rank correlation r, shrunk
// by what chance brings about among so few,
//   r * max(0, 1 - (1 - r^2) / (r^2 (n - 2))),
// which is 0 for r <= 0 and where r is less than a standard error from 0. Smaller is better on both
// sides; values that are not finite count as the worst. Equally many of both; 0 for fewer than 4.
// Source of the shrinkage: James & Stein 1961, its positive part, for one coefficient.
double PriorWorth(std::span<const double> expected, std::span<const double> losses);

// "prior a 0.62"
std::string DescribePrior(const PriorStudy& prior, double worth);

// For every second trial, by its number: the best configuration of a prior (of several in turns),
// then ever less good ones over the better half of its trials, that the context's space allows,
// fits, and no trial of `history` has had. So a new study starts where the earlier one ended, and
// sees over a range of its losses whether its order holds here. nullopt: it is not a prior's turn,
// or nothing is left.
std::optional<Suggestion> SuggestFromPriors(const AskContext& context, const History& history,
                                            std::span<const PriorStudy> priors);

}  // namespace hpo::sampler
