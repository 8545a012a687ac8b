// Whole files, written so that a reader sees the old content or the new, never a part.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo {

// Writes to a temporary name in the same folder and renames it to `path`. Not synced to the disk:
// for files that a restart makes anew.
//   NotFound, PermissionDenied, Unavailable  see FileError (read_file.h)
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

}  // namespace hpo
