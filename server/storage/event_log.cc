#include "server/storage/event_log.h"

#include "common/base/status.h"
#include "server/storage/row_codec.h"

namespace hpo::server {

void VisitColumns(Is<EventLog::Event> auto& event, auto visit) {
  visit({"sequence"}, event.sequence);
  visit({"kind"}, event.kind);
  visit({"number"}, event.trial);
}

absl::StatusOr<int64_t> EventLog::Append(TrialNumber trial, absl::string_view kind,
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

absl::StatusOr<std::vector<EventLog::Event>> EventLog::After(int64_t sequence, int limit) const {
  return SelectAll(database_, Event(),
                   "event WHERE study_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
                   study_id_, sequence, limit);
}

absl::Status EventLog::Forget(int64_t last) {
  return database_.Prepare("DELETE FROM event WHERE study_id = ?1 AND sequence <= ?2")
      .Bind(study_id_, last)
      .Run();
}

absl::StatusOr<int64_t> EventLog::LastSequence() const {
  Statement row = database_.Prepare("SELECT last_sequence FROM study WHERE id = ?1");
  HPO_RETURN_IF_ERROR(row.Bind(study_id_).Next().status());
  return row.Int(0);
}

}  // namespace hpo::server
