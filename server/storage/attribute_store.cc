// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/attribute_store.h"

#include "common/base/status.h"

namespace hpo::server {

absl::Status AttributeStore::Replace(TrialNumber trial, const Attributes& attributes) {
  HPO_RETURN_IF_ERROR(database_.Prepare("DELETE FROM attribute WHERE study_id = ?1 AND number = ?2")
                          .Bind(study_id_, trial.value)
                          .Run());
  for (const auto& [key, value] : attributes) {
    HPO_RETURN_IF_ERROR(database_.Prepare("INSERT INTO attribute VALUES (?1, ?2, ?3, ?4)")
                            .Bind(study_id_, trial.value, key, value)
                            .Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<Attributes> AttributeStore::Load(TrialNumber trial) const {
  Statement rows =
      database_.Prepare("SELECT key, value FROM attribute WHERE study_id = ?1 AND number = ?2");
  rows.Bind(study_id_, trial.value);
  Attributes attributes;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return attributes;
    attributes[rows.Text(0)] = rows.Text(1);
  }
}

absl::StatusOr<std::map<TrialNumber, std::string>> AttributeStore::Find(
    const std::string& key) const {
  Statement rows = database_.Prepare(
      "SELECT number, value FROM attribute WHERE study_id = ?1 AND key = ?2 AND number >= 0");
  rows.Bind(study_id_, key);
  std::map<TrialNumber, std::string> found;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return found;
    found[TrialNumber{rows.Int(0)}] = rows.Text(1);
  }
}

}  // namespace hpo::server
