// `hpo export html`: a study as one file that a browser opens without a server.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

// The page's own code with what the server says of the study now. An existing file is replaced,
// whole or not at all. `path` empty: STUDY.html.
//   NotFound, PermissionDenied, ResourceExhausted  the file cannot be written
absl::Status ExportPage(Session& session, const std::string& path);

}  // namespace hpo::cli
