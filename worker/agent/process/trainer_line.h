// A line of a trainer as the worker takes it: decoded, its long texts shortened, and held to what
// the server takes of a report or result, so that nothing that a trainer says is refused later.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/protocol/trainer_protocol.h"

namespace hpo::agent {

//   InvalidArgument  DecodeUp's, or a value beyond a limit (common/base/limits.h)
absl::StatusOr<UpMessage> ReadTrainerLine(absl::string_view line);

}  // namespace hpo::agent
