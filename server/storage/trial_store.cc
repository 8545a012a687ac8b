#include "server/storage/trial_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/storage/row_codec.h"

namespace hpo {
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
  HPO_ASSIGN_OR_RETURN(attempt.plan, FromText(row.Text(9), "plan", PlanFromJson));
  if (!row.IsNull(10)) {
    HPO_ASSIGN_OR_RETURN(attempt.final_plan, FromText(row.Text(10), "final_plan", PlanFromJson));
  }
  if (!row.IsNull(11)) {
    HPO_ASSIGN_OR_RETURN(attempt.memory, FromText(row.Text(11), "memory", MemoryReportFromJson));
  }
  if (!row.IsNull(12)) {
    HPO_ASSIGN_OR_RETURN(record.outcome, FromText(row.Text(12), "outcome", OutcomeFromJson));
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

std::optional<std::string> PruneReasonText(const std::optional<TrialOutcome>& outcome) {
  if (!outcome) return std::nullopt;
  const std::optional<PruneReason> reason = PruneReasonOf(*outcome);
  if (!reason) return std::nullopt;
  return std::string(Name(*reason));
}

// What was stored can be read, or it is refused: a row that no reader takes is of no use to anyone.
absl::Status ReadBack(const absl::Status& read) {
  if (!absl::IsDataLoss(read)) return read;
  return absl::InvalidArgumentError(
      absl::StrCat("expected values that can be stored and read again, got ", read.message()));
}

}  // namespace

absl::Status TrialStore::InsertTrial(const TrialRecord& record) {
  const Trial& trial = record.trial;
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare(
              "INSERT INTO trial (study_id, number, state, params, demonstration, admission, "
              "forced_micro_batch, min_capacity, current_attempt, result_attempt, preemptions, "
              "worker_losses, transient_failures, device_ooms, host_ooms, oom_met, created, "
              "last_sequence, origin, budgeted) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0, "
              "0, 0, 0, 0, 0, ?9, 0, ?10, ?11)")
          .Bind(study_id_, trial.id.number.value, Name(trial.state),
                JsonText(ParamsToJson(trial.params)), trial.demonstration, trial.admission,
                trial.forced_micro_batch, trial.min_capacity, trial.created, trial.origin,
                trial.budgeted)
          .Run());
  return database_
      .Prepare(
          "UPDATE study SET next_number = next_number + 1, num_budgeted = num_budgeted + ?2 "
          "WHERE id = ?1")
      .Bind(study_id_, trial.demonstration || !trial.budgeted ? 0 : 1)
      .Run();
}

absl::Status TrialStore::UpdateTrial(const TrialRecord& record) {
  const Trial& trial = record.trial;
  const RetryCounts& retries = record.retries;
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare(
              "UPDATE trial SET state = ?3, prune_reason = ?4, min_capacity = ?5, outcome = ?6, "
              "value = ?7, current_attempt = ?8, result_attempt = ?9, preemptions = ?10, "
              "worker_losses = ?11, transient_failures = ?12, device_ooms = ?13, host_ooms = "
              "?14, oom_met = ?15, last_oom = ?16, started = ?17, ended = ?18, violation = ?19, "
              "takeovers = ?20 "
              "WHERE study_id = ?1 AND number = ?2 AND state IN ('QUEUED', 'RUNNING')")
          .Bind(study_id_, trial.id.number.value, Name(trial.state), PruneReasonText(trial.outcome),
                trial.min_capacity, OptionalText(trial.outcome, OutcomeToJson), trial.value,
                record.current_attempt.value, record.result_attempt.value, retries.preemptions,
                retries.worker_losses, retries.transient_failures, retries.device_ooms,
                retries.host_ooms, record.oom_met, OptionalText(record.last_oom, OutcomeToJson),
                trial.started, trial.ended, trial.violation, retries.takeovers)
          .Run());
  if (database_.NumChanged() == 1) return ReadBack(LoadTrial(trial.id.number).status());
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", study_, " #", trial.id.number.value,
                   ": expected an open trial, got a finished one"));
}

absl::Status TrialStore::SetHeld(TrialNumber trial, absl::Duration held) {
  return database_
      .Prepare(
          "UPDATE trial SET held = ?3 WHERE study_id = ?1 AND number = ?2 AND state IN ('QUEUED', "
          "'RUNNING')")
      .Bind(study_id_, trial.value, held)
      .Run();
}

absl::Status TrialStore::InsertAttempt(const AttemptRecord& record) {
  const Attempt& attempt = record.attempt;
  return database_
      .Prepare(
          "INSERT INTO attempt VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, "
          "NULL, NULL, '', ?12, NULL, ?13, ?14, ?15)")
      .Bind(study_id_, record.trial.value, attempt.number.value, Name(attempt.state),
            attempt.worker, record.instance_key, record.token_hash, attempt.capacity, record.limit,
            attempt.predicted, JsonText(PlanToJson(attempt.plan)), attempt.started, record.required,
            record.preempted, record.stop_order)
      .Run();
}

absl::Status TrialStore::UpdateAttempt(const AttemptRecord& record) {
  const Attempt& attempt = record.attempt;
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare(
              "UPDATE attempt SET state = ?4, final_plan = ?5, memory = ?6, outcome = ?7, end_note "
              "= ?8, ended = ?9, preempted = ?10, stop_order = ?11 WHERE study_id = ?1 AND number "
              "= "
              "?2 AND attempt = ?3")
          .Bind(study_id_, record.trial.value, attempt.number.value, Name(attempt.state),
                OptionalText(attempt.final_plan, PlanToJson),
                OptionalText(attempt.memory, MemoryReportToJson),
                OptionalText(record.outcome, OutcomeToJson), attempt.end_note, attempt.ended,
                record.preempted, record.stop_order)
          .Run());
  return ReadBack(LoadAttempt(record.trial, attempt.number).status());
}

absl::StatusOr<int64_t> TrialStore::InsertMeasurements(
    TrialNumber trial, AttemptNumber attempt, const std::vector<Measurement>& measurements) {
  int64_t stored = 0;
  for (const Measurement& measurement : measurements) {
    HPO_RETURN_IF_ERROR(
        database_.Prepare("INSERT OR IGNORE INTO measurement VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
            .Bind(study_id_, trial.value, attempt.value, measurement.step, measurement.epoch,
                  JsonText(nlohmann::json(measurement.metrics)))
            .Run());
    stored += database_.NumChanged();
  }
  return stored;
}

absl::Status TrialStore::InsertMemoryRecords(TrialNumber trial, AttemptNumber attempt,
                                             const std::vector<MemoryRecord>& records) {
  for (const MemoryRecord& record : records) {
    HPO_RETURN_IF_ERROR(
        database_.Prepare("INSERT OR IGNORE INTO memory_record VALUES (?1, ?2, ?3, ?4, ?5)")
            .Bind(study_id_, trial.value, attempt.value, record.sequence,
                  JsonText(MemoryRecordToJson(record)))
            .Run());
  }
  return absl::OkStatus();
}

absl::Status TrialStore::StoreAttributes(TrialNumber trial, const Attributes& attributes) {
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

absl::StatusOr<Attributes> TrialStore::LoadAttributes(TrialNumber trial) const {
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

absl::StatusOr<std::map<TrialNumber, std::string>> TrialStore::FindAttribute(
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

absl::Status TrialStore::InsertSuggestion(TrialNumber trial, const SuggestionRecord& suggestion) {
  return database_.Prepare("INSERT INTO suggestion VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .Bind(study_id_, trial.value, suggestion.capacity, suggestion.calibration_version,
            suggestion.history_sequence, suggestion.sampler, suggestion.score)
      .Run();
}

absl::StatusOr<int64_t> TrialStore::AppendEvent(TrialNumber trial, absl::string_view kind,
                                                absl::Time now) {
  HPO_RETURN_IF_ERROR(
      database_.Prepare("UPDATE study SET last_sequence = last_sequence + 1 WHERE id = ?1")
          .Bind(study_id_)
          .Run());
  HPO_ASSIGN_OR_RETURN(const int64_t sequence, LastSequence());
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare("INSERT INTO event (study_id, sequence, number, kind, time) VALUES (?1, ?2, ?3, "
                   "?4, ?5)")
          .Bind(study_id_, sequence, trial.value, kind, now)
          .Run());
  HPO_RETURN_IF_ERROR(
      database_.Prepare("UPDATE trial SET last_sequence = ?3 WHERE study_id = ?1 AND number = ?2")
          .Bind(study_id_, trial.value, sequence)
          .Run());
  return sequence;
}

absl::StatusOr<AttemptRecord> TrialStore::LoadAttempt(TrialNumber trial,
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

absl::StatusOr<std::vector<AttemptRecord>> TrialStore::LoadAttempts(TrialNumber trial) const {
  Statement rows = database_.Prepare(
      absl::StrCat("SELECT ", kAttemptColumns,
                   " FROM attempt WHERE study_id = ?1 AND number = ?2 ORDER BY attempt"));
  rows.Bind(study_id_, trial.value);
  return ReadAttempts(rows, study_id_);
}

absl::StatusOr<std::vector<AttemptRecord>> TrialStore::LoadLeases() const {
  Statement rows = database_.Prepare(absl::StrCat(
      "SELECT ", kAttemptColumns,
      " FROM attempt WHERE state IN ('LEASED', 'SUSPECT') AND study_id = ?1 ORDER BY number"));
  rows.Bind(study_id_);
  return ReadAttempts(rows, study_id_);
}

absl::StatusOr<std::vector<Measurement>> TrialStore::LoadMeasurements(TrialNumber trial,
                                                                      AttemptNumber attempt) const {
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
    HPO_ASSIGN_OR_RETURN(measurement.metrics, FromText(rows.Text(2), "metrics", MetricsFromJson));
    measurements.push_back(std::move(measurement));
  }
}

absl::StatusOr<std::vector<MemoryRecord>> TrialStore::LoadMemoryRecords(
    TrialNumber trial, AttemptNumber attempt) const {
  Statement rows = database_.Prepare(
      "SELECT record FROM memory_record WHERE study_id = ?1 AND number = ?2 AND attempt = ?3 ORDER "
      "BY sequence");
  rows.Bind(study_id_, trial.value, attempt.value);
  std::vector<MemoryRecord> records;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return records;
    HPO_ASSIGN_OR_RETURN(records.emplace_back(),
                         FromText(rows.Text(0), "record", MemoryRecordFromJson));
  }
}

absl::StatusOr<std::string> TrialStore::LoadSampler(TrialNumber trial) const {
  Statement row =
      database_.Prepare("SELECT sampler FROM suggestion WHERE study_id = ?1 AND number = ?2");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, trial.value).Next());
  return found ? row.Text(0) : std::string();
}

absl::StatusOr<std::string> TrialStore::LoadLastSampler() const {
  Statement row = database_.Prepare("SELECT max(number) FROM suggestion WHERE study_id = ?1");
  HPO_RETURN_IF_ERROR(row.Bind(study_id_).Next().status());
  if (row.IsNull(0)) return std::string();
  HPO_ASSIGN_OR_RETURN(const std::string sampler, LoadSampler(TrialNumber{row.Int(0)}));
  return absl::StrCat("trial #", row.Int(0), ": ", sampler);
}

absl::StatusOr<int64_t> TrialStore::LastSequence() const {
  Statement row = database_.Prepare("SELECT last_sequence FROM study WHERE id = ?1");
  HPO_RETURN_IF_ERROR(row.Bind(study_id_).Next().status());
  return row.Int(0);
}

absl::Status TrialStore::ForgetEvents(int64_t last) {
  return database_.Prepare("DELETE FROM event WHERE study_id = ?1 AND sequence <= ?2")
      .Bind(study_id_, last)
      .Run();
}

absl::StatusOr<int64_t> TrialStore::CountMeasurements(TrialNumber trial,
                                                      AttemptNumber attempt) const {
  Statement row = database_.Prepare(
      "SELECT COUNT(*) FROM measurement WHERE study_id = ?1 AND number = ?2 AND attempt = ?3");
  HPO_RETURN_IF_ERROR(row.Bind(study_id_, trial.value, attempt.value).Next().status());
  return row.Int(0);
}

absl::StatusOr<std::vector<TrialStore::Event>> TrialStore::EventsAfter(int64_t sequence,
                                                                       int limit) const {
  Statement rows = database_.Prepare(
      "SELECT sequence, kind, number FROM event WHERE study_id = ?1 AND sequence > ?2 ORDER BY "
      "sequence LIMIT ?3");
  rows.Bind(study_id_, sequence, limit);
  std::vector<Event> events;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return events;
    events.push_back({rows.Int(0), rows.Text(1), TrialNumber{rows.Int(2)}});
  }
}

}  // namespace hpo
