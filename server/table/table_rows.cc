#include "server/table/table_rows.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/storage/attempt_store.h"
#include "server/storage/record_columns.h"
#include "server/storage/records.h"
#include "server/storage/row_codec.h"
#include "server/storage/trial_store.h"

namespace hpo::server {

absl::StatusOr<TableRow> TableRows::Read(const Statement& row) const {
  absl::StatusOr<TrialRecord> record =
      ReadRow(row, TrialRecord{.study_id = study_id_, .trial = {.id = {.study = study_}}});
  if (absl::IsDataLoss(record.status())) {
    return TableRow{.trial = UnreadableTrial({study_, TrialNumber{row.Int(0)}}, record.status())};
  }
  HPO_RETURN_IF_ERROR(record.status());
  const int first = row.num_columns() - 3;
  TableRow read{.trial = std::move(record->trial),
                .num_attempts = record->current_attempt.value,
                .worker = row.Text(first),
                .predicted = row.Size(first + 1)};
  if (!row.IsNull(first + 2)) {
    // One that cannot be read is not known: the trial is shown all the same.
    absl::StatusOr<MemoryReport> memory = FromText<MemoryReport>(row.Text(first + 2), "memory");
    if (memory.ok()) read.memory = *std::move(memory);
  }
  const std::optional<TrialOutcome>& outcome = read.trial.outcome;
  const bool has_metrics = outcome && (std::holds_alternative<Completed>(*outcome) ||
                                       std::holds_alternative<StoppedByPruner>(*outcome));
  const AttemptNumber told = record->ToldAttempt();
  if (has_metrics || told == kNoAttempt) return read;
  absl::StatusOr<std::optional<Measurement>> last =
      AttemptStore(database_, study_id_, study_).LoadLastMeasurement(read.trial.id.number, told);
  if (last.ok()) read.trial.last_measurement = *std::move(last);
  return read;
}

absl::Status TableRows::Visit(std::optional<TrialNumber> number,
                              const std::function<void(const TableRow&)>& visit) const {
  constexpr char kOfAttempt[] =
      " FROM attempt AS a WHERE a.study_id = trial.study_id AND a.number = trial.number AND "
      "a.attempt = CASE trial.result_attempt WHEN 0 THEN trial.current_attempt ELSE "
      "trial.result_attempt END)";
  Statement rows = database_.Prepare(
      absl::StrCat("SELECT ", ColumnNames<TrialRecord>(), ", (SELECT a.worker", kOfAttempt,
                   ", (SELECT a.predicted", kOfAttempt,
                   ", (SELECT a.memory FROM attempt AS a WHERE a.study_id = trial.study_id AND "
                   "a.number = trial.number AND a.memory IS NOT NULL ORDER BY a.attempt DESC "
                   "LIMIT 1) FROM trial WHERE study_id = ?1",
                   number ? " AND number = ?2" : " ORDER BY number"));
  number ? rows.Bind(study_id_, number->value) : rows.Bind(study_id_);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const TableRow read, Read(rows));
    visit(read);
  }
}

}  // namespace hpo::server
