#include "worker/trainer/base/torch_version.h"

#include <caffe2/core/common.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace hpo::trainer {
namespace {

// The value of "name=value" in a list separated by commas, or empty.
std::string Setting(absl::string_view config, absl::string_view name) {
  for (absl::string_view item : absl::StrSplit(config, absl::ByAnyChar(",\n"))) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(pair.first) == name) {
      return std::string(absl::StripAsciiWhitespace(pair.second));
    }
  }
  return "";
}

std::vector<absl::string_view> MajorAndMinor(absl::string_view version) {
  std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  parts.resize(2);
  return parts;
}

}  // namespace

absl::StatusOr<std::string> ParseTorchBuild(absl::string_view config) {
  const std::string version = Setting(config, "TORCH_VERSION");
  if (version.empty()) {
    return absl::NotFoundError("torch's build settings: expected TORCH_VERSION, got none");
  }
  const std::string cuda = Setting(config, "CUDA_VERSION");
  if (cuda.empty()) return version;
  return absl::StrCat(version, "+cu", absl::StrReplaceAll(cuda, {{".", ""}}));
}

// Not from at::show_config(): it asks for the CUDA hooks before the module is loaded
// (docs/adr/001-cuda-code-in-a-module.md).
absl::StatusOr<std::string> LoadedTorchBuild() {
  return ParseTorchBuild(absl::StrJoin(caffe2::GetBuildOptions(), ",", absl::PairFormatter("=")));
}

absl::Status CheckTorchVersion(absl::string_view built_with, absl::string_view loaded) {
  if (MajorAndMinor(built_with) == MajorAndMinor(loaded)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("expected torch ", absl::StrJoin(MajorAndMinor(built_with), "."),
                   ", with which this "
                   "program was built, got ",
                   loaded, ": set HPO_TORCH_ROOT to a matching torch, or build again"));
}

}  // namespace hpo::trainer
