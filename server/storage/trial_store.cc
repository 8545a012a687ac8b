// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/trial_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "server/storage/attempt_store.h"
#include "server/storage/attribute_store.h"
#include "server/storage/row_codec.h"
#include "server/storage/trial_row.h"

namespace hpo::server {
namespace {

// " AND column IN ('A', 'B')"; empty for no names. Names are ours, never a caller's text.
template <typename Enum>
std::string InList(absl::string_view column, const std::vector<Enum>& values) {
  if (values.empty()) return "";
  return absl::StrCat(" AND ", column, " IN (",
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, Enum value) {
                                      absl::StrAppend(out, "'", Name(value), "'");
                                    }),
                      ")");
}

std::string FilterText(const TrialFilter& filter) {
  return absl::StrCat(InList("state", filter.states), InList("prune_reason", filter.prune_reasons));
}

void AddCount(TrialCounts& counts, TrialState state, int64_t count) {
  switch (state) {
    case TrialState::kQueued:
      counts.queued += count;
      return;
    case TrialState::kRunning:
      counts.running += count;
      return;
    case TrialState::kCompleted:
      counts.completed += count;
      return;
    case TrialState::kPruned:
      counts.pruned += count;
      return;
    case TrialState::kFailed:
      counts.failed += count;
      return;
    case TrialState::kCancelled:
      counts.cancelled += count;
      return;
  }
}

}  // namespace

absl::Status TrialStore::InsertTrial(const TrialRecord& record) {
  const Trial& trial = record.trial;
  HPO_RETURN_IF_ERROR(InsertTrialRow(database_, study_id_, record));
  return database_
      .Prepare(
          "UPDATE study SET next_number = next_number + 1, num_budgeted = num_budgeted + ?2 "
          "WHERE id = ?1")
      .Bind(study_id_, trial.demonstration || !trial.budgeted ? 0 : 1)
      .Run();
}

absl::Status TrialStore::UpdateTrial(const TrialRecord& record) {
  const Trial& trial = record.trial;
  HPO_RETURN_IF_ERROR(UpdateTrialRow(database_, study_id_, record));
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

Trial UnreadableTrial(const TrialId& id, const absl::Status& why) {
  Trial trial;
  trial.id = id;
  trial.state = TrialState::kFailed;
  trial.outcome = Failed{.failure_class = FailureClass::kInternal,
                         .message = absl::StrCat("stored rows cannot be read: ", why.message())};
  return trial;
}

absl::StatusOr<TrialRecord> TrialStore::LoadTrial(TrialNumber number) const {
  Statement row = database_.Prepare(
      absl::StrCat("SELECT ", TrialColumns(), " FROM trial WHERE study_id = ?1 AND number = ?2"));
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, number.value).Next());
  if (found) return ReadTrialRow(row, study_id_, study_);
  return absl::NotFoundError(absl::StrCat("study ", study_, ": no trial #", number.value));
}

absl::StatusOr<std::optional<TrialRecord>> TrialStore::FindByOrigin(
    const std::string& origin) const {
  Statement row = database_.Prepare(
      absl::StrCat("SELECT ", TrialColumns(),
                   " FROM trial WHERE study_id = ?1 AND origin = ?2 AND origin <> ''"));
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id_, origin).Next());
  if (!found) return std::nullopt;
  HPO_ASSIGN_OR_RETURN(TrialRecord record, ReadTrialRow(row, study_id_, study_));
  return record;
}

absl::StatusOr<TrialRecord> TrialStore::LoadTrialWithAttempts(TrialNumber number) const {
  HPO_ASSIGN_OR_RETURN(TrialRecord record, LoadTrial(number));
  HPO_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts,
                       AttemptStore(database_, study_id_, study_).LoadAttempts(number));
  for (const AttemptRecord& attempt : attempts) {
    record.trial.attempts.push_back(attempt.attempt);
  }
  HPO_ASSIGN_OR_RETURN(record.trial.last_measurement, LoadLastMeasurement(record));
  HPO_ASSIGN_OR_RETURN(record.trial.attributes, AttributeStore(database_, study_id_).Load(number));
  return record;
}

absl::StatusOr<std::optional<Measurement>> TrialStore::LoadLastMeasurement(
    const TrialRecord& record) const {
  const AttemptNumber attempt = record.ToldAttempt();
  if (attempt == kNoAttempt) return std::nullopt;
  return AttemptStore(database_, study_id_, study_)
      .LoadLastMeasurement(record.trial.id.number, attempt);
}

absl::StatusOr<Trial> TrialStore::LoadTrialToShow(TrialNumber number) const {
  absl::StatusOr<TrialRecord> record = LoadTrialWithAttempts(number);
  if (record.ok()) return std::move(record->trial);
  if (!absl::IsDataLoss(record.status())) return record.status();
  return UnreadableTrial(TrialId{study_, number}, record.status());
}

absl::StatusOr<Trial> TrialStore::ReadTrialToShow(const Statement& row) const {
  absl::StatusOr<TrialRecord> record = ReadTrialRow(row, study_id_, study_);
  absl::Status read = record.status();
  if (read.ok()) {
    absl::StatusOr<std::optional<Measurement>> last = LoadLastMeasurement(*record);
    read = last.status();
    if (read.ok()) record->trial.last_measurement = *std::move(last);
  }
  if (read.ok()) {
    HPO_ASSIGN_OR_RETURN(record->trial.attributes,
                         AttributeStore(database_, study_id_).Load(record->trial.id.number));
    return std::move(record->trial);
  }
  if (!absl::IsDataLoss(read)) return read;
  return UnreadableTrial(TrialId{study_, TrialNumber{row.Int(0)}}, read);
}

absl::StatusOr<std::vector<TrialStore::LastEvent>> TrialStore::LastEvents() const {
  Statement rows = database_.Prepare(
      "SELECT number, last_sequence FROM trial WHERE study_id = ?1 ORDER BY last_sequence, number");
  rows.Bind(study_id_);
  std::vector<LastEvent> events;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return events;
    events.push_back({.trial = TrialNumber{rows.Int(0)}, .sequence = rows.Int(1)});
  }
}

absl::StatusOr<std::vector<Trial>> TrialStore::ListTrials(const TrialFilter& filter,
                                                          std::optional<TrialNumber> after,
                                                          int limit) const {
  const absl::string_view order = filter.newest_first ? " DESC" : " ASC";
  const absl::string_view past = filter.newest_first ? "<" : ">";
  Statement rows = database_.Prepare(absl::StrCat(
      "SELECT ", TrialColumns(), " FROM trial WHERE study_id = ?1 AND (?2 IS NULL OR number ", past,
      " ?2)", FilterText(filter), " ORDER BY number", order, " LIMIT ?3"));
  std::optional<int64_t> start;
  if (after) start = after->value;
  rows.Bind(study_id_, start, limit);
  std::vector<Trial> trials;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return trials;
    HPO_ASSIGN_OR_RETURN(trials.emplace_back(), ReadTrialToShow(rows));
  }
}

absl::StatusOr<int64_t> TrialStore::CountTrials(const TrialFilter& filter) const {
  Statement row = database_.Prepare(
      absl::StrCat("SELECT COUNT(*) FROM trial WHERE study_id = ?1", FilterText(filter)));
  HPO_RETURN_IF_ERROR(row.Bind(study_id_).Next().status());
  return row.Int(0);
}

absl::StatusOr<TrialCounts> TrialStore::Count() const {
  Statement rows = database_.Prepare(
      "SELECT state, demonstration, oom_met, prune_reason, COUNT(*), budgeted, violation > 0 FROM "
      "trial WHERE study_id = ?1 GROUP BY 1, 2, 3, 4, 6, 7");
  rows.Bind(study_id_);
  TrialCounts counts;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return counts;
    const int64_t count = rows.Int(4);
    if (rows.Bool(1)) {
      counts.demonstration += count;
      continue;
    }
    if (!rows.Bool(5)) {
      counts.imported += count;
      continue;
    }
    const std::optional<TrialState> state = ParseName<TrialState>(rows.Text(0));
    // Named with the study's unreadable ones.
    if (!state) continue;
    AddCount(counts, *state, count);
    if (rows.Bool(6)) counts.infeasible += count;
    if (rows.Bool(2)) counts.oom_met += count;
    if (rows.Bool(2) && *state == TrialState::kCompleted) counts.oom_recovered += count;
    if (rows.Text(3) == Name(PruneReason::kPredictedOutOfMemory)) counts.oom_predicted += count;
  }
}

absl::StatusOr<std::vector<Trial>> TrialStore::ListBest(Direction direction, int limit) const {
  const absl::string_view order = direction == Direction::kMaximize ? " DESC" : " ASC";
  const std::string query = absl::StrCat(
      "SELECT ", TrialColumns(),
      " FROM trial WHERE study_id = ?1 AND state = 'COMPLETED' AND value IS NOT NULL AND "
      "demonstration = 0 ORDER BY violation, value",
      order, ", number LIMIT ?2");
  // Rows that cannot be read do not count: then twice as many are asked for.
  for (int64_t asked = limit;; asked *= 2) {
    Statement rows = database_.Prepare(query);
    rows.Bind(study_id_, asked);
    std::vector<Trial> trials;
    int64_t num_rows = 0;
    for (;; ++num_rows) {
      HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) break;
      HPO_ASSIGN_OR_RETURN(Trial trial, ReadTrialToShow(rows));
      if (trial.state == TrialState::kCompleted) trials.push_back(std::move(trial));
    }
    if (limit < 0 || num_rows < asked) return trials;
    if (trials.size() >= static_cast<size_t>(limit)) {
      trials.resize(static_cast<size_t>(limit));
      return trials;
    }
  }
}

}  // namespace hpo::server
