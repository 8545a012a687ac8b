// Files that stand where a file of data or weights is expected, and are something else.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo::text {

inline constexpr size_t kForeignStart = 264;

// What the file is that begins with `start` (kForeignStart bytes are enough), and what to do: "a
// pointer of Git LFS, not the file itself; fetch the file, in its folder: git lfs pull". nullopt:
// nothing that is known.
std::optional<std::string> ForeignFile(absl::string_view start);

}  // namespace hpo::text
