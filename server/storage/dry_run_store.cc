// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/dry_run_store.h"

#include "common/base/status.h"
#include "common/protocol/preflight_fields.h"
#include "server/storage/row_codec.h"

namespace hpo::server {

void VisitColumns(Is<DryRunRecord> auto& record, auto visit) {
  visit({"number", RowColumn::kKey}, record.number);
  visit({"position", RowColumn::kKey}, record.position);
  visit({"params"}, record.params);
  visit({"worker"}, record.worker);
  VisitStored(record.need, visit);
  visit({"took"}, record.took);
  visit({"message"}, record.message);
  visit({"refused"}, record.refused);
  visit({"time"}, record.time);
}

namespace {

// Of rows with one number of microseconds each.
absl::StatusOr<std::vector<absl::Duration>> TimesOf(Statement& rows) {
  std::vector<absl::Duration> times;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return times;
    times.push_back(absl::Microseconds(rows.Int(0)));
  }
}

}  // namespace

absl::StatusOr<TrialTimes> DryRunStore::LoadTimes() const {
  TrialTimes times;
  Statement ooms = database_.Prepare(
      "SELECT ended - started FROM attempt WHERE study_id = ?1 AND ended >= started AND "
      "json_extract(outcome, '$.kind') = 'out_of_memory' AND "
      "NOT json_extract(outcome, '$.predicted')");
  HPO_ASSIGN_OR_RETURN(times.to_oom, TimesOf(ooms.Bind(study_id_)));
  Statement reports = database_.Prepare(
      "SELECT min(event.time) - trial.started FROM event JOIN trial USING (study_id, number) "
      "WHERE study_id = ?1 AND event.kind = 'measured' AND event.time >= trial.started "
      "GROUP BY number");
  HPO_ASSIGN_OR_RETURN(times.to_report, TimesOf(reports.Bind(study_id_)));
  return times;
}

absl::StatusOr<int64_t> DryRunStore::Insert(const std::vector<DryRunRecord>& rows) {
  Statement last =
      database_.Prepare("SELECT coalesce(max(number), -1) FROM dry_run WHERE study_id = ?1");
  HPO_RETURN_IF_ERROR(last.Bind(study_id_).Next().status());
  const int64_t number = last.Int(0) + 1;
  int64_t position = 0;
  for (const DryRunRecord& row : rows) {
    HPO_RETURN_IF_ERROR(
        InsertRow(database_, "INSERT INTO dry_run",
                  {{"study_id", study_id_}, {"number", number}, {"position", position}}, row));
    ++position;
  }
  return number;
}

absl::StatusOr<std::vector<DryRunRecord>> DryRunStore::LoadAll() const {
  return SelectAll(database_, DryRunRecord(),
                   "dry_run WHERE study_id = ?1 ORDER BY number, position", study_id_);
}

}  // namespace hpo::server
