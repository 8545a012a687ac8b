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
namespace {

// Columns of the attempt, after those of the trial.
constexpr int kNumOfAttempt = 4;

}  // namespace

absl::StatusOr<TableRow> TableRows::Read(const Statement& row) const {
  absl::StatusOr<TrialRecord> record =
      ReadRow(row, TrialRecord{.study_id = study_id_, .trial = {.id = {.study = study_}}});
  if (absl::IsDataLoss(record.status())) {
    return TableRow{.trial = UnreadableTrial({study_, TrialNumber{row.Int(0)}}, record.status())};
  }
  HPO_RETURN_IF_ERROR(record.status());
  const int first = row.num_columns() - kNumOfAttempt;
  TableRow read{.trial = std::move(record->trial),
                .num_attempts = record->current_attempt.value,
                .worker = row.Text(first),
                .predicted = row.Size(first + 1)};
  const bool has_measured = row.Int(first + 2) > 0;
  if (!row.IsNull(first + 3)) {
    // One that cannot be read is not known: the trial is shown all the same.
    absl::StatusOr<MemoryReport> memory = FromText<MemoryReport>(row.Text(first + 3), "memory");
    if (memory.ok()) read.memory = *std::move(memory);
  }
  const std::optional<TrialOutcome>& outcome = read.trial.outcome;
  const bool has_metrics = outcome && (std::holds_alternative<Completed>(*outcome) ||
                                       std::holds_alternative<StoppedByPruner>(*outcome));
  const AttemptNumber told = record->ToldAttempt();
  if (has_metrics || told == kNoAttempt || !has_measured) return read;
  absl::StatusOr<std::optional<Measurement>> last =
      AttemptStore(database_, study_id_, study_).LoadLastMeasurement(read.trial.id.number, told);
  if (last.ok()) read.trial.last_measurement = *std::move(last);
  return read;
}

absl::StatusOr<TrialNumber> TableRows::Last() const {
  Statement row =
      database_.Prepare("SELECT coalesce(max(number), ?2) FROM trial WHERE study_id = ?1");
  row.Bind(study_id_, kNoTrial.value);
  HPO_RETURN_IF_ERROR(row.Next().status());
  return TrialNumber{row.Int(0)};
}

absl::Status TableRows::Visit(TrialNumber first, TrialNumber last,
                              const std::function<void(const TableRow&)>& visit) const {
  // The attempt that tells about the trial comes by one search; earlier ones are looked at only
  // where there are some.
  Statement rows = database_.Prepare(absl::StrCat(
      "SELECT t.*, a.worker, a.predicted, a.measured, CASE WHEN t.current_attempt < 2 THEN "
      "a.memory "
      "ELSE (SELECT m.memory FROM attempt AS m WHERE m.study_id = ?1 AND m.number = t.number AND "
      "m.memory IS NOT NULL ORDER BY m.attempt DESC LIMIT 1) END FROM (SELECT ",
      ColumnNames<TrialRecord>(),
      " FROM trial WHERE study_id = ?1 AND "
      "number BETWEEN ?2 AND ?3) AS t LEFT JOIN attempt AS a ON a.study_id = ?1 AND a.number = "
      "t.number AND a.attempt = "
      "CASE t.result_attempt WHEN 0 THEN t.current_attempt ELSE t.result_attempt END "
      "ORDER BY t.number"));
  rows.Bind(study_id_, first.value, last.value);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const TableRow read, Read(rows));
    visit(read);
  }
}

}  // namespace hpo::server
