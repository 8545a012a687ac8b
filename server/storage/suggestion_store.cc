// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/suggestion_store.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/storage/row_codec.h"

namespace hpo::server {

void VisitColumns(Is<SuggestionRecord> auto& suggestion, auto visit) {
  visit({"capacity"}, suggestion.capacity);
  visit({"calibration_version"}, suggestion.calibration_version);
  visit({"history_sequence"}, suggestion.history_sequence);
  visit({"sampler"}, suggestion.sampler);
  visit({"score"}, suggestion.score);
}

absl::Status SuggestionStore::Insert(TrialNumber trial, const SuggestionRecord& suggestion) {
  return InsertRow(database_, "INSERT INTO suggestion",
                   {{"study_id", study_id_}, {"number", trial.value}}, suggestion);
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
