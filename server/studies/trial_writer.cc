// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/studies/trial_writer.h"

#include <algorithm>
#include <variant>

#include "common/base/status.h"

namespace hpo::server {
namespace {

// News of a running trial give no other worker anything to do.
bool WakesWorkers(const std::variant<TrialChange, TrialMeasured>& any) {
  if (std::holds_alternative<TrialMeasured>(any)) return false;
  const TrialChange& change = std::get<TrialChange>(any);
  return change.kind != kMeasured && change.kind != "oom_met" && change.kind != "replanned" &&
         change.kind != "preempt_ordered" && change.kind != "stop_ordered";
}

// In the order of their commits.
using Changes = std::vector<std::variant<TrialChange, TrialMeasured>>;

absl::Status AppendEvents(TrialTransaction& transaction, const StudyRuntime& study,
                          Changes& changes) {
  for (size_t i = 0; i < transaction.changed().size(); ++i) {
    const auto& [number, kind] = transaction.changed()[i];
    HPO_ASSIGN_OR_RETURN(const int64_t sequence,
                         transaction.events.Append(number, kind, transaction.now));
    const auto measured = transaction.measured().find(i);
    if (measured != transaction.measured().end() &&
        study.TakesMeasurementsOf(number, measured->second.attempt)) {
      measured->second.sequence = sequence;
      changes.emplace_back(std::move(measured->second));
      continue;
    }
    HPO_ASSIGN_OR_RETURN(TrialChange change, LoadChange(transaction, number, sequence, kind));
    changes.emplace_back(std::move(change));
  }
  return absl::OkStatus();
}

TrialNumber NumberOf(const std::variant<TrialChange, TrialMeasured>& change) {
  const auto* const measured = std::get_if<TrialMeasured>(&change);
  return measured == nullptr ? std::get<TrialChange>(change).record.trial.id.number
                             : measured->trial;
}

void Publish(const Changes& changes, absl::Duration now, StudyRuntime& study) {
  for (const auto& change : changes) {
    if (const auto* const measured = std::get_if<TrialMeasured>(&change)) {
      study.PublishMeasured(*measured);
    } else {
      study.Publish(std::get<TrialChange>(change), now, now);
    }
  }
}

absl::StatusOr<std::optional<OrderedStudy>> AppendOrder(TrialTransaction& transaction,
                                                        int64_t study_id) {
  if (!transaction.order()) return std::nullopt;
  OrderedStudy ordered = *transaction.order();
  HPO_RETURN_IF_ERROR(
      transaction.studies.UpdateOrder(study_id, ordered.order, ordered.failures_from));
  HPO_ASSIGN_OR_RETURN(ordered.sequence,
                       transaction.events.Append(kNoTrial, Name(ordered.order), transaction.now));
  return ordered;
}

}  // namespace

absl::StatusOr<TrialChange> LoadChange(const StudyRows& rows, TrialNumber number, int64_t sequence,
                                       std::string kind) {
  TrialChange change{.sequence = sequence, .kind = std::move(kind)};
  HPO_ASSIGN_OR_RETURN(change.record, rows.trials.LoadTrialWithAttempts(number));
  const TrialRecord& record = change.record;
  HPO_ASSIGN_OR_RETURN(change.measurements,
                       rows.attempts.LoadMeasurements(number, record.ToldAttempt()));
  if (record.trial.state == TrialState::kRunning) {
    HPO_ASSIGN_OR_RETURN(change.lease, rows.attempts.LoadAttempt(number, record.current_attempt));
  }
  return change;
}

absl::Status TrialTransaction::Teach(int64_t study_id, const ResidualRecord& record) {
  HPO_ASSIGN_OR_RETURN(const int64_t version, residuals_.Insert(study_id, record, now));
  taught_.push_back({.version = version, .residual = record.residual});
  return absl::OkStatus();
}

absl::Status ReadRows(const Store& store, const StudyRuntime& study,
                      const std::function<absl::Status(const StudyRows&)>& read) {
  return store.Read(
      [&](Database& database) { return read(StudyRows(database, study.id(), study.name())); });
}

absl::Status TrialWriter::Write(StudyRuntime& study, const Work& work) {
  Changes changes;
  std::vector<CalibrationStore::Stored> taught;
  std::vector<TrialNumber> noted;
  std::optional<OrderedStudy> ordered;
  const auto write = [&](Database& database) -> absl::Status {
    HPO_RETURN_IF_ERROR(study.CheckNotRetired());
    TrialTransaction transaction(database, study.id(), study.name(), clock_.Now());
    HPO_RETURN_IF_ERROR(work(transaction));
    taught = transaction.taught();
    noted = transaction.noted();
    HPO_RETURN_IF_ERROR(AppendEvents(transaction, study, changes));
    HPO_ASSIGN_OR_RETURN(ordered, AppendOrder(transaction, study.id()));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_.Write(write, [&] {
    const absl::Duration now = clock_.Monotonic();
    Publish(changes, now, study);
    for (const auto& [version, residual] : taught) calibration_.Publish(version, residual);
    if (ordered) study.TakeOrder(*ordered);
  }));
  if (ordered || std::any_of(changes.begin(), changes.end(), WakesWorkers)) work_.Raise();
  if (!on_trial_changed_) return absl::OkStatus();
  for (const auto& change : changes) on_trial_changed_(TrialId{study.name(), NumberOf(change)});
  for (const TrialNumber number : noted) on_trial_changed_(TrialId{study.name(), number});
  return absl::OkStatus();
}

}  // namespace hpo::server
