// A study as a file of Optuna's: SQLite in its schema 12, which Optuna from 3.2 on, its plots and
// optuna-dashboard open. A file may hold several studies; writing one again replaces it.
//
// One owner; not thread-safe. Codes of every call:
//   FailedPrecondition  the file cannot be opened or written, or is no such database; names it
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/interop/optuna/optuna_trial.h"
#include "common/study/study.h"
#include "common/study/trial_view.h"

struct sqlite3;

namespace hpo {

class OptunaFile {
 public:
  // Opens the file, or makes it, and begins to write `study` in place of one of that name. What is
  // not committed is not written.
  static absl::StatusOr<std::unique_ptr<OptunaFile>> Begin(const std::string& path,
                                                           const StudySpec& study);
  ~OptunaFile();
  OptunaFile(const OptunaFile&) = delete;
  OptunaFile& operator=(const OptunaFile&) = delete;

  // Every trial of the study in the order of their numbers, from 0 (ToOptuna).
  absl::Status Write(const TrialView& view);
  // What people note of the study: its user attributes. Notes and tags have our keys, "hpo.note"
  // and "hpo.tags", here and in a trial's.
  absl::Status WriteStudyAttributes(const Attributes& attributes);

  absl::Status Commit();

 private:
  OptunaFile(std::string path, StudySpec study, sqlite3* database)
      : path_(std::move(path)), study_(std::move(study)), database_(database) {}

  absl::Status Prepare();
  absl::Status Run(const char* sql, const nlohmann::json& values);
  absl::Status RemoveStudy();
  absl::Status WriteStudy();
  absl::Status WriteNumbers(const OptunaTrial& trial, int64_t trial_id);
  absl::StatusOr<int64_t> ReadInt(const char* sql, const nlohmann::json& values);
  absl::Status Error(absl::string_view doing) const;

  const std::string path_;
  const StudySpec study_;
  sqlite3* const database_;
  int64_t study_id_ = 0;
};

}  // namespace hpo
