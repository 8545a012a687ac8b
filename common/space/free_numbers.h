// Spaces of numbers alone, as CMA-ES searches them.
#pragma once

#include "common/space/search_space.h"

namespace hpo {

// Whether a search by numbers has an axis for `parameter`: modelled, more than one value, a number,
// and without conditions.
bool IsFreeNumber(const Parameter& parameter);

// The first modelled parameter of more than one value that is no free number; nullptr for none.
// Pure; safe from any thread.
const Parameter* FirstNotFreeNumber(const SearchSpace& space);

}  // namespace hpo
