// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/attempt_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/storage/record_columns.h"
#include "server/storage/row_codec.h"

namespace hpo::server {
absl::Status AttemptStore::InsertAttempt(const AttemptRecord& record) {
  return InsertRow(database_, "INSERT INTO attempt",
                   {{"study_id", study_id_},
                    {"number", record.trial.value},
                    {"attempt", record.attempt.number.value}},
                   record);
}

absl::Status AttemptStore::UpdateAttempt(const AttemptRecord& record) {
  const AttemptNumber attempt = record.attempt.number;
  HPO_RETURN_IF_ERROR(UpdateRow(
      database_, "attempt",
      {{"study_id", study_id_}, {"number", record.trial.value}, {"attempt", attempt.value}},
      record));
  return ReadBack(LoadAttempt(record.trial, attempt).status());
}

absl::StatusOr<AttemptRecord> AttemptStore::LoadAttempt(TrialNumber trial,
                                                        AttemptNumber attempt) const {
  HPO_ASSIGN_OR_RETURN(std::optional<AttemptRecord> record,
                       SelectFirst(database_, AttemptRecord{.study_id = study_id_},
                                   "attempt WHERE study_id = ?1 AND number = ?2 AND attempt = ?3",
                                   study_id_, trial.value, attempt.value));
  if (record.has_value()) return *std::move(record);
  return absl::NotFoundError(
      absl::StrCat("trial ", study_, " #", trial.value, ": no attempt ", attempt.value));
}

absl::StatusOr<std::vector<AttemptRecord>> AttemptStore::LoadAttempts(TrialNumber trial) const {
  return SelectAll(database_, AttemptRecord{.study_id = study_id_},
                   "attempt WHERE study_id = ?1 AND number = ?2 ORDER BY attempt", study_id_,
                   trial.value);
}

absl::StatusOr<std::vector<AttemptRecord>> AttemptStore::LoadLeases() const {
  return SelectAll(database_, AttemptRecord{.study_id = study_id_},
                   "attempt WHERE state IN ('LEASED', 'SUSPECT') AND study_id = ?1 ORDER BY number",
                   study_id_);
}

absl::StatusOr<std::vector<Measurement>> AttemptStore::InsertMeasurements(
    TrialNumber trial, AttemptNumber attempt, std::vector<Measurement> measurements) {
  std::vector<Measurement> stored;
  int64_t num_steps = 0;
  for (Measurement& measurement : measurements) {
    HPO_RETURN_IF_ERROR(
        InsertRow(database_, "INSERT OR IGNORE INTO measurement",
                  {{"study_id", study_id_}, {"number", trial.value}, {"attempt", attempt.value}},
                  measurement));
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
      "measurement WHERE study_id = ?1 AND number = ?2 AND attempt = ?3 AND step = ?4";
  HPO_ASSIGN_OR_RETURN(std::optional<Measurement> found,
                       SelectFirst(database_, Measurement(), kOne, study_id_, trial.value,
                                   attempt.value, measurement.step));
  if (!found.has_value()) return false;
  Measurement& stored = *found;
  const size_t before = stored.metrics.size();
  stored.metrics.insert(measurement.metrics.begin(), measurement.metrics.end());
  if (stored.metrics.size() == before || std::ssize(stored.metrics) > kMetricLimit.most)
    return false;
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare("UPDATE measurement SET metrics = ?5 WHERE study_id = ?1 AND number = ?2 AND "
                   "attempt = ?3 AND step = ?4")
          .Bind(study_id_, trial.value, attempt.value, stored.step, ToColumn(stored.metrics))
          .Run());
  measurement = std::move(stored);
  return true;
}

absl::StatusOr<std::vector<Measurement>> AttemptStore::LoadMeasurements(
    TrialNumber trial, AttemptNumber attempt) const {
  return SelectAll(database_, Measurement(),
                   "measurement WHERE study_id = ?1 AND number = ?2 AND attempt = ?3 ORDER BY step",
                   study_id_, trial.value, attempt.value);
}

absl::StatusOr<std::optional<Measurement>> AttemptStore::LoadLastMeasurement(
    TrialNumber trial, AttemptNumber attempt) const {
  return SelectFirst(database_, Measurement(),
                     "measurement WHERE study_id = ?1 AND number = ?2 AND attempt = ?3 "
                     "ORDER BY step DESC LIMIT 1",
                     study_id_, trial.value, attempt.value);
}

absl::StatusOr<int64_t> AttemptStore::CountMeasurements(TrialNumber trial,
                                                        AttemptNumber attempt) const {
  Statement row = database_.Prepare(
      "SELECT measured FROM attempt WHERE study_id = ?1 AND number = ?2 AND attempt = ?3");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, trial.value, attempt.value).Next());
  return found ? row.Int(0) : 0;
}

absl::StatusOr<std::vector<AttemptStore::EndedTime>> AttemptStore::SumEnded() const {
  Statement rows =
      database_.Prepare("SELECT state, outcome, duration FROM attempt_time WHERE study_id = ?1");
  rows.Bind(study_id_);
  std::vector<EndedTime> times;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return times;
    times.push_back({.state = rows.Text(0),
                     .outcome = rows.Text(1),
                     .duration = absl::Microseconds(rows.Int(2))});
  }
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

absl::Status AttemptStore::StoreLogTail(TrialNumber trial, AttemptNumber attempt,
                                        const std::string& tail) {
  return database_.Prepare("INSERT OR REPLACE INTO attempt_log VALUES (?1, ?2, ?3, ?4)")
      .Bind(study_id_, trial.value, attempt.value, tail)
      .Run();
}

absl::StatusOr<std::string> AttemptStore::LoadLogTail(TrialNumber trial,
                                                      AttemptNumber attempt) const {
  Statement row = database_.Prepare(
      "SELECT tail FROM attempt_log WHERE study_id = ?1 AND number = ?2 AND attempt = ?3");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, trial.value, attempt.value).Next());
  return found ? row.Text(0) : std::string();
}

}  // namespace hpo::server
