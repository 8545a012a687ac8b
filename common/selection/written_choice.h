// Choices of a parameter as people write them.
#pragma once

#include <optional>
#include <string>

#include "common/space/search_space.h"

namespace hpo {

// The choice that `text` writes: as it is printed, or in another way (0.0 and 1e-1 for numbers,
// True for true, None and ~ for null). A text may stand in double quotes, and must where it reads
// as another choice: null is null, "null" a text. nullopt: none.
std::optional<ParamValue> ChoiceWritten(const CategoricalDomain& domain, const std::string& text);

}  // namespace hpo
