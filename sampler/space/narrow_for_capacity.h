// What of a space a worker can run. Pure.
#pragma once

#include "common/space/search_space.h"
#include "sampler/sampler.h"

namespace hpo {

// The part of the space that can run at the context's capacity: per parameter, the values for which
// some configuration fits (the cheapest values elsewhere). Shown to workers and users; candidates
// are still checked one by one. Equals context.space where feasibility is empty.
SearchSpace NarrowForCapacity(const AskContext& context);

}  // namespace hpo
