// `hpo study edit`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct EditOptions {
  std::string file;              // the study's changed file; or
  std::vector<std::string> set;  // "NAME=LOW..HIGH", "NAME=CHOICE,CHOICE"
  bool dry_run = false;          // only shows what would come of it
};

// Changes ranges and choices; shows them before and after.
absl::Status EditStudy(Session& session, const EditOptions& options);

}  // namespace hpo::cli
