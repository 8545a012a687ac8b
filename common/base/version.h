// The version of all programs, from the build (project(hpo VERSION ...)).
#pragma once

#include "absl/strings/string_view.h"

namespace hpo {

// "0.1.0".
absl::string_view Version();

}  // namespace hpo
