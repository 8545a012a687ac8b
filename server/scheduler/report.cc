// TrialScheduler: heartbeats and measurements of running trials.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/lease_token.h"

namespace hpo {
namespace {

absl::Status Superseded(const LeaseRef& lease) {
  return absl::AbortedError(absl::StrCat("trial ", lease.trial.study, " #",
                                         lease.trial.number.value, ": attempt ",
                                         lease.attempt.value, " no longer holds the lease"));
}

// The attempt, where the report's lease proves that it is the caller's and still holds the trial; a
// part of a result may come later.
absl::StatusOr<AttemptRecord> LoadReporter(const TrialStore& trials, const AttemptReport& report) {
  const LeaseRef& lease = report.lease;
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                       trials.LoadAttempt(lease.trial.number, lease.attempt));
  const bool may_report = report.of_result || attempt.HoldsLease();
  const bool proved = attempt.token_hash == HashOfToken(lease.token);
  if (!proved || !may_report) return Superseded(lease);
  return attempt;
}

// The measurements that the attempt has room for; of a result the rest is left out, as the result
// itself matters more.
//   InvalidArgument  a running attempt has more of them than it may
absl::StatusOr<std::vector<Measurement>> TakeWhatFits(const TrialStore& trials,
                                                      const AttemptReport& report) {
  std::vector<Measurement> taken = report.measurements;
  if (taken.empty()) return taken;
  HPO_ASSIGN_OR_RETURN(const int64_t stored,
                       trials.CountMeasurements(report.lease.trial.number, report.lease.attempt));
  const int64_t room = std::max<int64_t>(0, kMeasurementLimit.most - stored);
  if (std::ssize(taken) <= room) return taken;
  if (!report.of_result) {
    return absl::InvalidArgumentError(absl::StrCat("measurements: expected at most ",
                                                   kMeasurementLimit.most, " of an attempt, got ",
                                                   stored + std::ssize(taken)));
  }
  taken.resize(static_cast<size_t>(room));
  return taken;
}

absl::Status TakeAttributes(TrialTransaction& transaction, TrialNumber trial,
                            const Attributes& told) {
  if (told.empty()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(Attributes attributes, transaction.trials.LoadAttributes(trial));
  HPO_ASSIGN_OR_RETURN(attributes, Changed(std::move(attributes), {.note = {}, .set = told}));
  transaction.Noted(trial);
  return transaction.trials.StoreAttributes(trial, attributes);
}

}  // namespace

absl::StatusOr<HeartbeatResult> TrialScheduler::Heartbeat(const std::string& session,
                                                          const std::vector<LeaseBeat>& beats,
                                                          Bytes capacity, const std::string& notice,
                                                          bool leaving) {
  HeartbeatResult result;
  result.next = HeartbeatInterval(options_.lease);
  result.server_epoch = epoch_;
  // 0: the worker could not measure it just now.
  const std::optional<Bytes> measured =
      capacity.count > 0 ? std::optional<Bytes>(capacity) : std::nullopt;
  const absl::StatusOr<RegisteredWorker> worker = workers_.Beat(session, measured);
  result.register_again = absl::IsNotFound(worker.status());
  workers_.SetNotice(session, notice);
  for (const LeaseBeat& beat : beats) {
    HPO_ASSIGN_OR_RETURN(const Directive directive, Beat(beat.lease));
    result.directives.push_back(directive);
  }
  if (leaving && worker.ok()) {
    workers_.Leave(session);
    HPO_RETURN_IF_ERROR(ReleaseNeverTaken(worker->facts, beats));
    WakeAll();
  }
  return result;
}

absl::Status TrialScheduler::ReleaseNeverTaken(const WorkerFacts& left,
                                               const std::vector<LeaseBeat>& still_held) {
  for (StudyRuntime* study : Studies()) {
    for (const HeldLease& lease : study->leases()) {
      if (lease.worker != left.worker || lease.instance_key != left.instance_key) continue;
      const bool held = std::any_of(still_held.begin(), still_held.end(), [&](const LeaseBeat& b) {
        return b.lease.trial == TrialId{study->name(), lease.trial} &&
               b.lease.attempt == lease.attempt;
      });
      if (!held) HPO_RETURN_IF_ERROR(EndLease(*study, lease, LeaseLoss::kNeverTaken));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Directive> TrialScheduler::Beat(const LeaseRef& lease) {
  // Not ours to judge.
  if (!lease.database.empty() && lease.database != database_) return Directive::kContinue;
  const auto study = FindStudy(lease.trial.study);
  if (!study.ok()) return Directive::kLeaseLost;
  const StudyRuntime::Renewal renewal = (*study)->Renew(lease, clock_.Monotonic());
  if (renewal == StudyRuntime::Renewal::kLost) return Directive::kLeaseLost;
  if (renewal == StudyRuntime::Renewal::kReadopted) {
    const absl::Status held = SetAttemptState(**study, lease.trial.number, lease.attempt,
                                              AttemptState::kSuspect, AttemptState::kLeased);
    if (Quarantined(**study, lease.trial.number, held)) return Directive::kLeaseLost;
    HPO_RETURN_IF_ERROR(held);
  }
  const std::optional<HeldLease> held = (*study)->FindLease(lease.trial.number);
  if (held && held->cancelled) return Directive::kCancelled;
  if (held && held->stop) {
    return held->stop->pruner == kTimeLimitPruner ? Directive::kTimeLimit : Directive::kStopPruned;
  }
  return held && held->preempted ? Directive::kPreempted : Directive::kContinue;
}

absl::Status TrialScheduler::SetAttemptState(StudyRuntime& study, TrialNumber trial,
                                             AttemptNumber attempt, AttemptState from,
                                             AttemptState to) {
  return writer_.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(AttemptRecord record, transaction.trials.LoadAttempt(trial, attempt));
    if (record.attempt.state != from) return absl::OkStatus();
    record.attempt.state = to;
    return transaction.trials.UpdateAttempt(record);
  });
}

absl::StatusOr<ReportResult> TrialScheduler::Report(const AttemptReport& report) {
  const LeaseRef& lease = report.lease;
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(lease.trial.study));
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, LoadReporter(transaction.trials, report));
    HPO_ASSIGN_OR_RETURN(const std::vector<Measurement> taken,
                         TakeWhatFits(transaction.trials, report));
    HPO_ASSIGN_OR_RETURN(const int64_t stored, transaction.trials.InsertMeasurements(
                                                   lease.trial.number, lease.attempt, taken));
    HPO_RETURN_IF_ERROR(transaction.trials.InsertMemoryRecords(lease.trial.number, lease.attempt,
                                                               report.memory_records));
    HPO_RETURN_IF_ERROR(TakeAttributes(transaction, lease.trial.number, report.attributes));
    if (stored > 0) transaction.Changed(lease.trial.number, "measured");
    const int64_t known_ooms = attempt.attempt.memory ? attempt.attempt.memory->num_ooms : 0;
    const bool replanned = report.new_plan && report.new_plan != attempt.attempt.final_plan;
    if (!replanned && report.num_ooms <= known_ooms) return absl::OkStatus();
    if (replanned) attempt.attempt.final_plan = report.new_plan;
    if (report.num_ooms > known_ooms) {
      attempt.attempt.memory = attempt.attempt.memory.value_or(MemoryReport{});
      attempt.attempt.memory->num_ooms = report.num_ooms;
      HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(lease.trial.number));
      record.oom_met = true;
      HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
    }
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateAttempt(attempt));
    transaction.Changed(lease.trial.number, replanned ? "replanned" : "oom_met");
    return absl::OkStatus();
  };
  const absl::Status written = writer_.Write(*study, work);
  Quarantined(*study, lease.trial.number, written);
  HPO_RETURN_IF_ERROR(written);
  if (report.of_result) return ReportResult{};
  const std::optional<PruneDecision> stop = study->DecidePruning(lease.trial.number);
  // A report proves life as a heartbeat does, and is told the same.
  HPO_ASSIGN_OR_RETURN(const Directive directive, Beat(lease));
  if (!stop) return ReportResult{.directive = directive};
  return ReportResult{
      .should_stop = true, .pruner = stop->pruner, .why = stop->why, .directive = directive};
}

}  // namespace hpo
