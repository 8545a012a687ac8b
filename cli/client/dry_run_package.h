// `hpo memory dry-run`: hands over to the Python package hpo_dryrun (python/dryrun).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hpo::cli {

// Replaces this process by the package. `words` are its command line. Python says in one line where
// the package is missing, and the exit status is 1. Returns only on failure:
//   Internal  python3 cannot be started
absl::StatusOr<int> RunMemoryDryRun(const std::vector<std::string>& words);

}  // namespace hpo::cli
