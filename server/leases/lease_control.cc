// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/leases/lease_control.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/leases/attempt_end.h"
#include "server/leases/retry_policy.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {
namespace {

// How many different workers were lost while running the trial, the holder of `lease` included.
// One whose process alone has ended is no other worker than the next process on its machine, that
// of a search that was killed and started again.
absl::StatusOr<int64_t> CountWorkersKilled(const AttemptStore& stored, const HeldLease& lease,
                                           LeaseLoss why) {
  if (why == LeaseLoss::kProcessEnded) return 1;
  HPO_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts, stored.LoadAttempts(lease.trial));
  std::set<std::string> killed = {lease.worker};
  for (const AttemptRecord& earlier : attempts) {
    if (earlier.attempt.state == AttemptState::kLost) killed.insert(earlier.attempt.worker);
  }
  return static_cast<int64_t>(killed.size());
}

absl::string_view Cause(LeaseLoss why) {
  switch (why) {
    case LeaseLoss::kSilent:
      return "no heartbeat";
    case LeaseLoss::kRestarted:
      return "worker restarted";
    case LeaseLoss::kNameTaken:
      return "its name was taken";
    case LeaseLoss::kNeverTaken:
      return "the worker left without it";
    case LeaseLoss::kProcessEnded:
      return "the worker's process has ended";
    case LeaseLoss::kCutOff:
      return "the worker's connection has closed";
  }
  return "";
}

absl::StatusOr<AttemptEnding> EndingOfLost(const AttemptStore& stored, const HeldLease& lease,
                                           const RetryCounts& retries, LeaseLoss why) {
  if (why == LeaseLoss::kNameTaken) {
    return AttemptEnding{AttemptState::kReleased, AfterTakeover(retries)};
  }
  if (why == LeaseLoss::kNeverTaken) {
    return AttemptEnding{AttemptState::kReleased,
                         Verdict{.counts = retries, .note = std::string(Cause(why))}};
  }
  HPO_ASSIGN_OR_RETURN(const int64_t killed, CountWorkersKilled(stored, lease, why));
  Verdict verdict = AfterWorkerLoss(retries, killed);
  verdict.note = absl::StrCat(Cause(why), ": ", verdict.note);
  return AttemptEnding{AttemptState::kLost, verdict};
}

}  // namespace

absl::StatusOr<Directive> LeaseControl::Renew(const LeaseRef& lease) {
  if (!lease.database.empty() && lease.database != state_.epoch.database) {
    return Directive::kContinue;
  }
  const auto study = state_.studies.Find(lease.trial.study);
  if (!study.ok()) return Directive::kLeaseLost;
  const OpenTrials::Renewal renewal = (*study)->open.Renew(lease, state_.clock.Monotonic());
  if (renewal == OpenTrials::Renewal::kLost) return Directive::kLeaseLost;
  if (renewal == OpenTrials::Renewal::kReadopted) {
    const absl::Status held = SetAttemptState(**study, lease.trial.number, lease.attempt,
                                              AttemptState::kSuspect, AttemptState::kLeased);
    if ((*study)->QuarantineIfUnreadable(lease.trial.number, held)) return Directive::kLeaseLost;
    HPO_RETURN_IF_ERROR(held);
  }
  const std::optional<HeldLease> held = (*study)->open.FindLease(lease.trial.number);
  if (held && held->cancelled) return Directive::kCancelled;
  if (held && held->stop) {
    return held->stop->pruner == kTimeLimitPruner ? Directive::kTimeLimit : Directive::kStopPruned;
  }
  return held && held->preempted ? Directive::kPreempted : Directive::kContinue;
}

absl::Status LeaseControl::SetAttemptState(StudyRuntime& study, TrialNumber trial,
                                           AttemptNumber attempt, AttemptState from,
                                           AttemptState to) {
  return state_.writer.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(AttemptRecord record, transaction.attempts.LoadAttempt(trial, attempt));
    if (record.attempt.state != from) return absl::OkStatus();
    record.attempt.state = to;
    return transaction.attempts.UpdateAttempt(record);
  });
}

absl::Status LeaseControl::Suspect(StudyRuntime& study, const HeldLease& lease) {
  const absl::Status suspected = SetAttemptState(study, lease.trial, lease.attempt,
                                                 AttemptState::kLeased, AttemptState::kSuspect);
  if (study.QuarantineIfUnreadable(lease.trial, suspected)) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(suspected);
  study.open.MarkSuspect(lease.trial, lease.attempt);
  return absl::OkStatus();
}

absl::Status LeaseControl::TakeBack(StudyRuntime& study, const HeldLease& lease, LeaseLoss why) {
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                         transaction.attempts.LoadAttempt(lease.trial, lease.attempt));
    const std::optional<HeldLease> held = study.open.FindLease(lease.trial);
    const bool renewed = !held || held->renewed_at != lease.renewed_at;
    if (renewed || !attempt.HoldsLease()) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(lease.trial));
    HPO_RETURN_IF_ERROR(StoreLogTail(transaction, study.open, attempt, /*told=*/""));
    HPO_ASSIGN_OR_RETURN(const AttemptEnding end,
                         EndingOfLost(transaction.attempts, lease, record.retries, why));
    return EndAttempt(transaction, study.spec(), end, record, attempt);
  };
  const absl::Status taken = state_.writer.Write(study, work);
  return study.QuarantineIfUnreadable(lease.trial, taken) ? absl::OkStatus() : taken;
}

}  // namespace hpo::server
