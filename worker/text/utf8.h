// Checks of encoded text.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace hpo {

// Where the first byte stands that is not part of well-formed UTF-8 (no surrogates, no overlong
// forms); npos when all of `text` is.
size_t FindInvalidUtf8(absl::string_view text);

// Characters of well-formed UTF-8.
size_t CountCharacters(absl::string_view text);

}  // namespace hpo
