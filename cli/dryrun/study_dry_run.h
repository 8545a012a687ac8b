// `hpo memory dry-run STUDY.yaml`: which part of a study's space fits on GPUs, by dry runs of some
// of its configurations (memory/frontier).
#pragma once

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace hpo::cli {

// Dry-runs what the session's forwarded words say, and shows the frontier. Progress is on standard
// error. SIGINT and SIGTERM end it with a report of what was run before. The exit status is that of
// --help.
//   InvalidArgument  the study file or the command is wrong, or the dry runs' own words are
//   Internal         no configuration could be dry-run: the first one's error
//   Unavailable      no process or descriptor can be had
absl::StatusOr<int> DryRunStudy(Session& session);

}  // namespace hpo::cli
