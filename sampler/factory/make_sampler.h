// Makes the sampler that a study asks for.
#pragma once

#include <memory>
#include <vector>

#include "common/study/study.h"
#include "sampler/api/sampler.h"

namespace hpo::sampler {

// The sampler that the study names, started from `priors`. It repeats no configuration while there
// are others (space/finite_space.h). One explicit switch; an unknown type was refused by
// ValidateStudy. `spec.seed` keys all its streams.
std::unique_ptr<Sampler> MakeSampler(const StudySpec& study, std::vector<PriorStudy> priors = {});

}  // namespace hpo::sampler
