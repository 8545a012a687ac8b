// Names that come from a study, as paths of this machine: only below the folder that the worker was
// given for them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace hpo::agent {

// The absolute path of `name` in `folder`, or of an absolute `name` that lies below it; symbolic
// links are followed. What is not there yet is no error.
//   PermissionDenied  it leads out of the folder; `option` names the flag that gave the folder
absl::StatusOr<std::string> PathBelow(const std::string& folder, const std::string& name,
                                      const std::string& option);

// The same, of a file.
//   InvalidArgument  it is there and no regular file: a folder, a device, a pipe
absl::StatusOr<std::string> FileBelow(const std::string& folder, const std::string& name,
                                      const std::string& option);

// Where the link `path` leads, if nothing is there; nullopt: it is no link, or one to something.
std::optional<std::string> DanglingLink(const std::filesystem::path& path);

}  // namespace hpo::agent
