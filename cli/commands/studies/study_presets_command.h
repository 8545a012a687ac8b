// `hpo study presets`: the study files that are compiled in.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

// The study files that are compiled in: one line each, or with a name the file. Asks no server.
//   NotFound  no preset has that name
absl::Status ShowPresets(Session& session, const std::string& name);

}  // namespace hpo::cli
