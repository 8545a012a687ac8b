// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/suggestion_store.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {

absl::Status SuggestionStore::Insert(TrialNumber trial, const SuggestionRecord& suggestion) {
  return database_.Prepare("INSERT INTO suggestion VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .Bind(study_id_, trial.value, suggestion.capacity, suggestion.calibration_version,
            suggestion.history_sequence, suggestion.sampler, suggestion.score)
      .Run();
}

absl::StatusOr<std::string> SuggestionStore::LoadSampler(TrialNumber trial) const {
  Statement row =
      database_.Prepare("SELECT sampler FROM suggestion WHERE study_id = ?1 AND number = ?2");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, trial.value).Next());
  return found ? row.Text(0) : std::string();
}

absl::StatusOr<std::string> SuggestionStore::LoadLastSampler() const {
  Statement row = database_.Prepare("SELECT max(number) FROM suggestion WHERE study_id = ?1");
  HPO_RETURN_IF_ERROR(row.Bind(study_id_).Next().status());
  if (row.IsNull(0)) return std::string();
  HPO_ASSIGN_OR_RETURN(const std::string sampler, LoadSampler(TrialNumber{row.Int(0)}));
  return absl::StrCat("trial #", row.Int(0), ": ", sampler);
}

}  // namespace hpo::server
