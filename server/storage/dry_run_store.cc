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
