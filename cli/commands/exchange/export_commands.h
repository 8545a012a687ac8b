// `hpo export`: a study's trials for other programs. Writing again brings what is there up to date.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

// One MLflow run a trial that has started, in `experiment` (empty: named as the study).
//   codes of MlflowClient; a trial that fails ends the export, those before it are written
absl::Status ExportMlflow(Session& session, const std::string& uri, const std::string& experiment);

// One run folder a trial that has started, DIR/STUDY/000012, with one event file.
//   FailedPrecondition  a folder or file cannot be written
absl::Status ExportTensorboard(Session& session, const std::string& folder);

// Every trial, in a file of Optuna's; other studies in it stay
// (common/interop/optuna/optuna_file.h). What its format has no place for is named.
//   FailedPrecondition  the file cannot be written, or is another database
absl::Status ExportOptuna(Session& session, const std::string& path);

}  // namespace hpo::cli
