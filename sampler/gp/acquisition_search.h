// The configuration that promises most: random and local candidates, then from the best of them in
// turn L-BFGS-B over the continuous parameters and steps on exact values over the others, until
// neither helps. Only configurations that fit the asking worker are walked through, and none whose
// modelled part was tried: where all candidates were, what is left of a small space (UntriedOf);
// where nothing is left of that, and there is more than the modelled part, they are tried again.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <vector>

#include "sampler/gp/acquisition.h"
#include "sampler/gp/search_region.h"
#include "sampler/space/candidate_pool.h"

namespace hpo::sampler {

struct ScoredCandidate {
  Candidate candidate;
  double score = 0.0;
};

// `incumbents`: observed configurations, the best first, around which local candidates lie, where
// these are not around the center of `box`. `tried`: configurations of trials. `box`: where to
// search, unless nothing new is left there; null: everywhere. nullopt where no candidate fits.
std::optional<ScoredCandidate> MaximizeAcquisition(const AskContext& context,
                                                   const CodedSpace& space,
                                                   const Acquisition& acquisition,
                                                   const std::vector<Codes>& incumbents,
                                                   const std::vector<Codes>& tried, Rng& rng,
                                                   const SearchBox* box = nullptr);

}  // namespace hpo::sampler
