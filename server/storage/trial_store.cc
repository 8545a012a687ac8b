// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/trial_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "server/storage/attempt_store.h"
#include "server/storage/attribute_store.h"
#include "server/storage/record_columns.h"
#include "server/storage/row_codec.h"

namespace hpo::server {

void VisitColumns(Is<TrialStore::LastEvent> auto& event, auto visit) {
  visit({"number"}, event.trial);
  visit({"last_sequence"}, event.sequence);
}

namespace {

// Number of trials with the same values of all properties that TrialCounts distinguishes.
struct AlikeTrials {
  std::string state;
  std::string prune_reason;
  bool demonstration = false;
  bool budgeted = false;
  bool infeasible = false;
  bool oom_met = false;
  int64_t count = 0;
};

void VisitColumns(Is<AlikeTrials> auto& alike, auto visit) {
  visit({"state"}, alike.state);
  visit({"prune_reason"}, alike.prune_reason);
  visit({"demonstration"}, alike.demonstration);
  visit({"budgeted"}, alike.budgeted);
  visit({"violation > 0"}, alike.infeasible);
  visit({"oom_met"}, alike.oom_met);
  visit({"COUNT(*)"}, alike.count);
}

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
  HPO_RETURN_IF_ERROR(InsertRow(database_, "INSERT INTO trial",
                                {{"study_id", study_id_}, {"number", trial.id.number.value}},
                                record));
  return database_
      .Prepare(
          "UPDATE study SET next_number = next_number + 1, num_budgeted = num_budgeted + ?2 "
          "WHERE id = ?1")
      .Bind(study_id_, trial.demonstration || !trial.budgeted ? 0 : 1)
      .Run();
}

absl::Status TrialStore::UpdateTrial(const TrialRecord& record) {
  const Trial& trial = record.trial;
  HPO_RETURN_IF_ERROR(UpdateRow(database_, "trial",
                                {{"study_id", study_id_}, {"number", trial.id.number.value}},
                                record, " AND state IN ('QUEUED', 'RUNNING')"));
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

TrialRecord TrialStore::Blank() const {
  return {.study_id = study_id_, .trial = {.id = {.study = study_}}};
}

absl::StatusOr<TrialRecord> TrialStore::LoadTrial(TrialNumber number) const {
  HPO_ASSIGN_OR_RETURN(std::optional<TrialRecord> record,
                       SelectFirst(database_, Blank(), "trial WHERE study_id = ?1 AND number = ?2",
                                   study_id_, number.value));
  if (record.has_value()) return *std::move(record);
  return absl::NotFoundError(absl::StrCat("study ", study_, ": no trial #", number.value));
}

absl::StatusOr<std::optional<TrialRecord>> TrialStore::FindByOrigin(
    const std::string& origin) const {
  return SelectFirst(database_, Blank(),
                     "trial WHERE study_id = ?1 AND origin = ?2 AND origin <> ''", study_id_,
                     origin);
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
  absl::StatusOr<TrialRecord> record = ReadRow(row, Blank());
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
  return SelectAll(database_, LastEvent(),
                   "trial WHERE study_id = ?1 ORDER BY last_sequence, number", study_id_);
}

absl::StatusOr<std::vector<Trial>> TrialStore::ListTrials(const TrialFilter& filter,
                                                          std::optional<TrialNumber> after,
                                                          int limit) const {
  const absl::string_view order = filter.newest_first ? " DESC" : " ASC";
  const absl::string_view past = filter.newest_first ? "<" : ">";
  Statement rows = database_.Prepare(
      absl::StrCat("SELECT ", ColumnNames<TrialRecord>(),
                   " FROM trial WHERE study_id = ?1 AND (?2 IS NULL OR number ", past, " ?2)",
                   FilterText(filter), " ORDER BY number", order, " LIMIT ?3"));
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
  HPO_ASSIGN_OR_RETURN(const std::vector<AlikeTrials> all,
                       SelectAll(database_, AlikeTrials(),
                                 "trial WHERE study_id = ?1 GROUP BY 1, 2, 3, 4, 5, 6", study_id_));
  TrialCounts counts;
  for (const AlikeTrials& alike : all) {
    if (alike.demonstration) {
      counts.demonstration += alike.count;
      continue;
    }
    if (!alike.budgeted) {
      counts.imported += alike.count;
      continue;
    }
    const std::optional<TrialState> state = ParseName<TrialState>(alike.state);
    // Named with the study's unreadable ones.
    if (!state) continue;
    AddCount(counts, *state, alike.count);
    if (alike.infeasible) counts.infeasible += alike.count;
    if (alike.oom_met) counts.oom_met += alike.count;
    if (alike.oom_met && *state == TrialState::kCompleted) counts.oom_recovered += alike.count;
    if (alike.prune_reason == Name(PruneReason::kPredictedOutOfMemory)) {
      counts.oom_predicted += alike.count;
    }
  }
  return counts;
}

absl::StatusOr<std::vector<Trial>> TrialStore::ListBest(Direction direction, int limit) const {
  const absl::string_view order = direction == Direction::kMaximize ? " DESC" : " ASC";
  const std::string query = absl::StrCat(
      "SELECT ", ColumnNames<TrialRecord>(),
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
