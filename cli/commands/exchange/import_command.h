// `hpo import`: trials that another program ran, for a study here.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct ImportOptions {
  std::string path;
  std::string study;  // in the file; empty: its only one
  bool count_against_budget = false;
};

// The trials of one of Optuna's studies that have ended, all or none. Again: only what is new. A
// study that is not there is made from the file (OptunaStudyFile).
//   codes of ReadOptunaStudy, OptunaStudyFile and of the server's CreateStudy and ImportTrials
absl::Status ImportOptuna(Session& session, const ImportOptions& options);

}  // namespace hpo::cli
