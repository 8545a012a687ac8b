// LibTorch has no stable ABI: the trainer runs only on the minor version it was built with.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::trainer {

// "2.11.0+cu130" of the library that is loaded, from its own build settings; without the suffix for
// a build without CUDA.
//   NotFound  the build settings name no version
absl::StatusOr<std::string> LoadedTorchBuild();

// Reads the same out of a list "NAME=value, ...", such as the text of at::show_config().
absl::StatusOr<std::string> ParseTorchBuild(absl::string_view config);

// OK when both have the same major and minor version.
//   FailedPrecondition  says both, and what to do
absl::Status CheckTorchVersion(absl::string_view built_with, absl::string_view loaded);

}  // namespace hpo::trainer
