// `hpo memory estimate --spec`. Codes, apart from its own: InvalidArgument where a word, size or
// file is wrong, NotFound where a file or model is not there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace hpo::cli {

// Whether the step that the file at `path` ("-": standard input) describes fits its device. Needs
// no server. The format: docs/step-description.md.
absl::StatusOr<bool> EstimateDescribedStep(Session& session, const std::string& path);

}  // namespace hpo::cli
