// The commands of `hpo memory`. Those that need no server say so.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands.h"

namespace hpo {

// Whether the step that the file at `path` ("-": standard input) describes fits its device. Needs
// no server. The format: docs/memory.md, "Describing a step".
absl::StatusOr<bool> EstimateDescribedStep(Session& session, const std::string& path);

}  // namespace hpo
