// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/attempt_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/storage/row_codec.h"

namespace hpo::server {
namespace {

constexpr absl::string_view kAttemptColumns =
    "number, attempt, state, worker, instance_key, token, capacity, usable, predicted, plan, "
    "final_plan, memory, outcome, end_note, started, ended, required, preempted, stop_order";

absl::StatusOr<AttemptRecord> ReadAttempt(const Statement& row, int64_t study_id) {
  AttemptRecord record;
  record.study_id = study_id;
  record.trial = TrialNumber{row.Int(0)};
  Attempt& attempt = record.attempt;
  attempt.number = AttemptNumber{row.Int(1)};
  HPO_ASSIGN_OR_RETURN(attempt.state, EnumFromText<AttemptState>(row.Text(2)));
  attempt.worker = row.Text(3);
  record.instance_key = row.Text(4);
  record.token_hash = row.Text(5);
  attempt.capacity = row.Size(6);
  record.limit = row.Size(7);
  attempt.predicted = row.Size(8);
  HPO_ASSIGN_OR_RETURN(attempt.plan, FromText<MemoryPlan>(row.Text(9), "plan"));
  if (!row.IsNull(10)) {
    HPO_ASSIGN_OR_RETURN(attempt.final_plan, FromText<MemoryPlan>(row.Text(10), "final_plan"));
  }
  if (!row.IsNull(11)) {
    HPO_ASSIGN_OR_RETURN(attempt.memory, FromText<MemoryReport>(row.Text(11), "memory"));
  }
  if (!row.IsNull(12)) {
    HPO_ASSIGN_OR_RETURN(record.outcome, FromText<TrialOutcome>(row.Text(12), "outcome"));
  }
  attempt.end_note = row.Text(13);
  attempt.started = row.Time(14);
  attempt.ended = row.Time(15);
  record.required = row.Size(16);
  record.preempted = row.Bool(17);
  if (!row.IsNull(18)) record.stop_order = row.Text(18);
  return record;
}

absl::StatusOr<std::vector<AttemptRecord>> ReadAttempts(Statement& rows, int64_t study_id) {
  std::vector<AttemptRecord> attempts;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return attempts;
    HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, ReadAttempt(rows, study_id));
    attempts.push_back(std::move(attempt));
  }
}

}  // namespace

absl::Status AttemptStore::InsertAttempt(const AttemptRecord& record) {
  const Attempt& attempt = record.attempt;
  return database_
      .Prepare(
          "INSERT INTO attempt VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, "
          "NULL, NULL, '', ?12, NULL, ?13, ?14, ?15, 0)")
      .Bind(study_id_, record.trial.value, attempt.number.value, Name(attempt.state),
            attempt.worker, record.instance_key, record.token_hash, attempt.capacity, record.limit,
            attempt.predicted, JsonText(PlanToJson(attempt.plan)), attempt.started, record.required,
            record.preempted, record.stop_order)
      .Run();
}

absl::Status AttemptStore::UpdateAttempt(const AttemptRecord& record) {
  const Attempt& attempt = record.attempt;
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare(
              "UPDATE attempt SET state = ?4, final_plan = ?5, memory = ?6, outcome = ?7, end_note "
              "= ?8, ended = ?9, preempted = ?10, stop_order = ?11 WHERE study_id = ?1 AND number "
              "= "
              "?2 AND attempt = ?3")
          .Bind(study_id_, record.trial.value, attempt.number.value, Name(attempt.state),
                OptionalText(attempt.final_plan), OptionalText(attempt.memory),
                OptionalText(record.outcome), attempt.end_note, attempt.ended, record.preempted,
                record.stop_order)
          .Run());
  return ReadBack(LoadAttempt(record.trial, attempt.number).status());
}

absl::StatusOr<AttemptRecord> AttemptStore::LoadAttempt(TrialNumber trial,
                                                        AttemptNumber attempt) const {
  Statement rows = database_.Prepare(
      absl::StrCat("SELECT ", kAttemptColumns,
                   " FROM attempt WHERE study_id = ?1 AND number = ?2 AND attempt = ?3"));
  rows.Bind(study_id_, trial.value, attempt.value);
  HPO_ASSIGN_OR_RETURN(const bool found, rows.Next());
  if (found) return ReadAttempt(rows, study_id_);
  return absl::NotFoundError(
      absl::StrCat("trial ", study_, " #", trial.value, ": no attempt ", attempt.value));
}

absl::StatusOr<std::vector<AttemptRecord>> AttemptStore::LoadAttempts(TrialNumber trial) const {
  Statement rows = database_.Prepare(
      absl::StrCat("SELECT ", kAttemptColumns,
                   " FROM attempt WHERE study_id = ?1 AND number = ?2 ORDER BY attempt"));
  rows.Bind(study_id_, trial.value);
  return ReadAttempts(rows, study_id_);
}

absl::StatusOr<std::vector<AttemptRecord>> AttemptStore::LoadLeases() const {
  Statement rows = database_.Prepare(absl::StrCat(
      "SELECT ", kAttemptColumns,
      " FROM attempt WHERE state IN ('LEASED', 'SUSPECT') AND study_id = ?1 ORDER BY number"));
  rows.Bind(study_id_);
  return ReadAttempts(rows, study_id_);
}

absl::StatusOr<std::vector<Measurement>> AttemptStore::InsertMeasurements(
    TrialNumber trial, AttemptNumber attempt, std::vector<Measurement> measurements) {
  std::vector<Measurement> stored;
  int64_t num_steps = 0;
  for (Measurement& measurement : measurements) {
    HPO_RETURN_IF_ERROR(
        database_.Prepare("INSERT OR IGNORE INTO measurement VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
            .Bind(study_id_, trial.value, attempt.value, measurement.step, measurement.epoch,
                  JsonText(MetricsToJson(measurement.metrics)))
            .Run());
    const bool is_new = database_.NumChanged() > 0;
    num_steps += is_new ? 1 : 0;
    if (!is_new) {
      HPO_ASSIGN_OR_RETURN(const bool has_more, AddMetrics(trial, attempt, measurement));
      if (!has_more) continue;
    }
    stored.push_back(std::move(measurement));
  }
  if (num_steps == 0) return stored;
  HPO_RETURN_IF_ERROR(database_
                          .Prepare("UPDATE attempt SET measured = measured + ?4 WHERE study_id = "
                                   "?1 AND number = ?2 AND attempt = ?3")
                          .Bind(study_id_, trial.value, attempt.value, num_steps)
                          .Run());
  return stored;
}

absl::StatusOr<bool> AttemptStore::AddMetrics(TrialNumber trial, AttemptNumber attempt,
                                              Measurement& measurement) {
  constexpr absl::string_view kOne =
      " WHERE study_id = ?1 AND number = ?2 AND attempt = ?3 AND step = ?4";
  Measurement stored{.step = measurement.step};
  {
    Statement row = database_.Prepare(absl::StrCat("SELECT epoch, metrics FROM measurement", kOne));
    row.Bind(study_id_, trial.value, attempt.value, measurement.step);
    HPO_RETURN_IF_ERROR(row.Next().status());
    stored.epoch = row.Real(0);
    HPO_ASSIGN_OR_RETURN(stored.metrics, FromText<Metrics>(row.Text(1), "metrics"));
  }
  const size_t before = stored.metrics.size();
  stored.metrics.insert(measurement.metrics.begin(), measurement.metrics.end());
  if (stored.metrics.size() == before || std::ssize(stored.metrics) > kMetricLimit.most)
    return false;
  HPO_RETURN_IF_ERROR(database_.Prepare(absl::StrCat("UPDATE measurement SET metrics = ?5", kOne))
                          .Bind(study_id_, trial.value, attempt.value, stored.step,
                                JsonText(MetricsToJson(stored.metrics)))
                          .Run());
  measurement = std::move(stored);
  return true;
}

absl::StatusOr<std::vector<Measurement>> AttemptStore::LoadMeasurements(
    TrialNumber trial, AttemptNumber attempt) const {
  Statement rows = database_.Prepare(
      "SELECT step, epoch, metrics FROM measurement WHERE study_id = ?1 AND number = ?2 AND "
      "attempt "
      "= ?3 ORDER BY step");
  rows.Bind(study_id_, trial.value, attempt.value);
  std::vector<Measurement> measurements;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return measurements;
    Measurement measurement{.step = rows.Int(0), .epoch = rows.Real(1)};
    HPO_ASSIGN_OR_RETURN(measurement.metrics, FromText<Metrics>(rows.Text(2), "metrics"));
    measurements.push_back(std::move(measurement));
  }
}

absl::StatusOr<std::optional<Measurement>> AttemptStore::LoadLastMeasurement(
    TrialNumber trial, AttemptNumber attempt) const {
  Statement row = database_.Prepare(
      "SELECT step, epoch, metrics FROM measurement WHERE study_id = ?1 AND number = ?2 AND "
      "attempt = ?3 ORDER BY step DESC LIMIT 1");
  row.Bind(study_id_, trial.value, attempt.value);
  HPO_ASSIGN_OR_RETURN(const bool found, row.Next());
  if (!found) return std::nullopt;
  Measurement last{.step = row.Int(0), .epoch = row.Real(1)};
  HPO_ASSIGN_OR_RETURN(last.metrics, FromText<Metrics>(row.Text(2), "metrics"));
  return last;
}

absl::StatusOr<int64_t> AttemptStore::CountMeasurements(TrialNumber trial,
                                                        AttemptNumber attempt) const {
  Statement row = database_.Prepare(
      "SELECT measured FROM attempt WHERE study_id = ?1 AND number = ?2 AND attempt = ?3");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, trial.value, attempt.value).Next());
  return found ? row.Int(0) : 0;
}

absl::Status AttemptStore::InsertMemoryRecords(TrialNumber trial, AttemptNumber attempt,
                                               const std::vector<MemoryRecord>& records) {
  for (const MemoryRecord& record : records) {
    HPO_RETURN_IF_ERROR(
        database_.Prepare("INSERT OR IGNORE INTO memory_record VALUES (?1, ?2, ?3, ?4, ?5)")
            .Bind(study_id_, trial.value, attempt.value, record.sequence, JsonText(ToJson(record)))
            .Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<MemoryRecord>> AttemptStore::LoadMemoryRecords(
    TrialNumber trial, AttemptNumber attempt) const {
  Statement rows = database_.Prepare(
      "SELECT record FROM memory_record WHERE study_id = ?1 AND number = ?2 AND attempt = ?3 ORDER "
      "BY sequence");
  rows.Bind(study_id_, trial.value, attempt.value);
  std::vector<MemoryRecord> records;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return records;
    HPO_ASSIGN_OR_RETURN(records.emplace_back(), FromText<MemoryRecord>(rows.Text(0), "record"));
  }
}

}  // namespace hpo::server
