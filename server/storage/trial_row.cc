// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/trial_row.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/study/trial.h"
#include "server/storage/row_codec.h"

namespace hpo::server {
namespace {

enum class Changes {
  kNever,      // after it was inserted
  kUpdate,     // with UpdateTrialRow
  kElsewhere,  // by a statement of its own (EventLog::Append, TrialStore::SetHeld)
};

// All columns that are read, in the order of TrialColumns. Record: TrialRecord, const or not.
template <typename Record, typename Visit>
void VisitTrialColumns(Record& record, const Visit& visit) {
  auto& trial = record.trial;
  auto& retries = record.retries;
  visit("number", Changes::kNever, trial.id.number);
  visit("state", Changes::kUpdate, trial.state);
  visit("params", Changes::kNever, trial.params);
  visit("demonstration", Changes::kNever, trial.demonstration);
  visit("admission", Changes::kNever, trial.admission);
  visit("forced_micro_batch", Changes::kNever, trial.forced_micro_batch);
  visit("min_capacity", Changes::kUpdate, trial.min_capacity);
  visit("outcome", Changes::kUpdate, trial.outcome);
  visit("value", Changes::kUpdate, trial.value);
  visit("current_attempt", Changes::kUpdate, record.current_attempt);
  visit("result_attempt", Changes::kUpdate, record.result_attempt);
  visit("preemptions", Changes::kUpdate, retries.preemptions);
  visit("worker_losses", Changes::kUpdate, retries.worker_losses);
  visit("takeovers", Changes::kUpdate, retries.takeovers);
  visit("transient_failures", Changes::kUpdate, retries.transient_failures);
  visit("device_ooms", Changes::kUpdate, retries.device_ooms);
  visit("host_ooms", Changes::kUpdate, retries.host_ooms);
  visit("oom_met", Changes::kUpdate, record.oom_met);
  visit("last_oom", Changes::kUpdate, record.last_oom);
  visit("created", Changes::kNever, trial.created);
  visit("started", Changes::kUpdate, trial.started);
  visit("ended", Changes::kUpdate, trial.ended);
  visit("last_sequence", Changes::kElsewhere, record.last_sequence);
  visit("origin", Changes::kNever, trial.origin);
  visit("budgeted", Changes::kNever, trial.budgeted);
  visit("violation", Changes::kUpdate, trial.violation);
  visit("held", Changes::kElsewhere, record.held);
}

// Of the outcome, for filters; never read.
std::optional<std::string> PruneReasonText(const std::optional<TrialOutcome>& outcome) {
  if (!outcome) return std::nullopt;
  const std::optional<PruneReason> reason = PruneReasonOf(*outcome);
  if (!reason) return std::nullopt;
  return std::string(Name(*reason));
}

std::string InsertText() {
  std::string values = "?1, ?2";
  int index = 2;
  const TrialRecord none;
  VisitTrialColumns(none, [&](absl::string_view, Changes, const auto&) {
    absl::StrAppend(&values, ", ?", ++index);
  });
  return absl::StrCat("INSERT INTO trial (study_id, prune_reason, ", TrialColumns(), ") VALUES (",
                      values, ")");
}

std::string UpdateText() {
  std::string sets = "prune_reason = ?3";
  int index = 3;
  const TrialRecord none;
  VisitTrialColumns(none, [&](absl::string_view name, Changes changes, const auto&) {
    if (changes == Changes::kUpdate) absl::StrAppend(&sets, ", ", name, " = ?", ++index);
  });
  return absl::StrCat("UPDATE trial SET ", sets,
                      " WHERE study_id = ?1 AND number = ?2 AND state IN ('QUEUED', 'RUNNING')");
}

}  // namespace

const std::string& TrialColumns() {
  static const auto* const kColumns = [] {
    std::vector<absl::string_view> names;
    const TrialRecord none;
    VisitTrialColumns(none,
                      [&](absl::string_view name, Changes, const auto&) { names.push_back(name); });
    return new std::string(absl::StrJoin(names, ", "));
  }();
  return *kColumns;
}

absl::StatusOr<TrialRecord> ReadTrialRow(const Statement& row, int64_t study_id,
                                         const std::string& study) {
  TrialRecord record{.study_id = study_id};
  record.trial.id.study = study;
  ColumnReader reader(row);
  VisitTrialColumns(
      record, [&](absl::string_view name, Changes, auto& value) { reader.Read(name, value); });
  HPO_RETURN_IF_ERROR(reader.status());
  return record;
}

absl::Status InsertTrialRow(Database& database, int64_t study_id, const TrialRecord& record) {
  static const auto* const kText = new std::string(InsertText());
  Statement statement = database.Prepare(*kText);
  statement.Bind(study_id, PruneReasonText(record.trial.outcome));
  int index = 2;
  VisitTrialColumns(record, [&](absl::string_view, Changes, const auto& value) {
    statement.BindAt(++index, ToColumn(value));
  });
  return statement.Run();
}

absl::Status UpdateTrialRow(Database& database, int64_t study_id, const TrialRecord& record) {
  static const auto* const kText = new std::string(UpdateText());
  Statement statement = database.Prepare(*kText);
  statement.Bind(study_id, record.trial.id.number.value, PruneReasonText(record.trial.outcome));
  int index = 3;
  VisitTrialColumns(record, [&](absl::string_view, Changes changes, const auto& value) {
    if (changes == Changes::kUpdate) statement.BindAt(++index, ToColumn(value));
  });
  return statement.Run();
}

}  // namespace hpo::server
