// `hpo study delete`, which archives first, and `hpo study restore`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct DeleteOptions {
  std::string archive;  // where to; empty: STUDY.hpo-study in the present folder
  bool no_archive = false;
};

// Archives the study and deletes it; nothing is deleted that is not archived whole.
absl::Status DeleteStudy(Session& session, const DeleteOptions& options);

// Adds the study of an archive, called `name` where that is not empty.
absl::Status RestoreStudy(Session& session, const std::string& file, const std::string& name);

}  // namespace hpo::cli
