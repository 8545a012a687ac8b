// What a submission keeps on this machine: the script or manifest, and the file of the secret.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

// The folder of a fleet on this machine.
std::string FleetFolder(absl::string_view name);

// Path of the file by which workers of this plan reach the server, and which holds the secret;
// empty where no secret is needed.
std::string JoinFileOf(const FleetPlan& plan);

// Writes the secret to that file, for its owner alone, if it is not there by the user's own doing.
//   codes of FileError (common/files/read_file.h)
absl::Status KeepSecret(const FleetPlan& plan);

// Writes `content` to the file `name` in the folder of the plan, for its owner alone. Its path.
//   codes of FileError
absl::StatusOr<std::string> KeepFile(const FleetPlan& plan, absl::string_view name,
                                     absl::string_view content);

// KeepFile, or where `content` is empty, removes what a fleet of the same name has left there.
//   codes of FileError
absl::Status KeepOrDropFile(const FleetPlan& plan, absl::string_view name,
                            absl::string_view content);

// The secret itself, on one line, from the plan or its file.
//   codes of ReadFile; InvalidArgument  the file is empty
absl::StatusOr<std::string> ReadSecret(const FleetPlan& plan);

}  // namespace hpo::cli
