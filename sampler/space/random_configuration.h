// Configurations drawn at random, or at a point of the unit cube. Pure; safe from any thread.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/space/params.h"
#include "common/space/search_space.h"

namespace hpo::sampler {

// A complete configuration: parameters in order, parents first; each that is active takes its value
// in `preset` where that is allowed, and is drawn uniformly from its allowed domain otherwise.
// Values of `preset` for inactive or unknown parameters are left out.
//   FailedPrecondition  every one of a bounded number of draws came to a parameter whose
//                       constraints leave no value; names it
absl::StatusOr<ParamMap> DrawConfiguration(const SearchSpace& space, const ParamMap& preset,
                                           Rng& rng);

// As DrawConfiguration, but the parameter of index i takes the part point[i], in [0, 1), of its
// allowed domain (ValueAtPart); it is drawn where the point has no such coordinate, or NaN.
//   FailedPrecondition  the constraints leave a parameter no value there; names it
absl::StatusOr<ParamMap> ConfigurationAt(const SearchSpace& space, const ParamMap& preset,
                                         std::span<const double> point, Rng& rng);

}  // namespace hpo::sampler
