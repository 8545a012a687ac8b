// Whether a search space is one. Pure.
#pragma once

#include "absl/status/status.h"
#include "common/space/search_space.h"

namespace hpo {

// Structural checks: names unique and not empty, ranges not empty and finite, log ranges positive,
// steps positive, choices present and distinct, conditions that name earlier parameters, narrowings
// inside their parameter's domain, of its kind and on its grid, defaults inside their domain.
// Bounds and numbers of grid values are at most 2^53, which doubles hold exactly.
//   InvalidArgument  names the parameter and what is wrong
absl::Status ValidateSpace(const SearchSpace& space);

// The parts of ValidateSpace, for a reader that knows where each part was written. A parameter is
// checked against those before `index`.
absl::Status ValidateDomain(const Domain& domain);
absl::Status ValidateParameter(const SearchSpace& space, size_t index);
absl::Status ValidateNarrowing(const SearchSpace& space, const Narrowing& narrowing);

}  // namespace hpo
