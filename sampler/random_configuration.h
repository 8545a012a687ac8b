// Configurations drawn at random. Pure; safe from any thread.
#pragma once

#include "absl/status/statusor.h"
#include "common/params.h"
#include "common/random.h"
#include "common/search_space.h"

namespace hpo {

// A complete configuration: parameters in order, parents first; each that is active takes its value
// in `preset` where that is allowed, and is drawn uniformly from its allowed domain otherwise.
// Values of `preset` for inactive or unknown parameters are left out.
//   FailedPrecondition  every one of a bounded number of draws came to a parameter whose
//                       constraints leave no value; names it
absl::StatusOr<ParamMap> DrawConfiguration(const SearchSpace& space, const ParamMap& preset,
                                           Rng& rng);

}  // namespace hpo
