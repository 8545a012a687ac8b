// `hpo study importance`: what mattered, computed here from the study's completed trials.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct ImportanceOptions {
  std::string method = "ped-anova";  // or "fanova": common/interop/importance/study_importance.h
  std::string metric;                // of an objective; empty: the first
};

//   FailedPrecondition  too few completed trials, or nothing that moves the metric
absl::Status ShowImportance(Session& session, const ImportanceOptions& options);

}  // namespace hpo::cli
