// The page of `hpo export html` without its data: web/dist-export/export.html, which is in this
// program.
#pragma once

#include "absl/strings/string_view.h"

namespace hpo::cli {

// It has HPO-DATA once, in the place of the data.
absl::string_view PageFile();

}  // namespace hpo::cli
