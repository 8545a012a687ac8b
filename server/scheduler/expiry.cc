// TrialScheduler: what happens because time passes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/scheduler/capability.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo {
namespace {

constexpr absl::Duration kStoreWallClockEach = absl::Seconds(10);

}  // namespace

absl::Status TrialScheduler::Tick() {
  for (StudyRuntime* study : Studies()) {
    const bool was_finished = study->Finished();
    study->Account(clock_.Monotonic());
    HPO_RETURN_IF_ERROR(ExpireLeases(*study));
    // One beat early, as that is when the worker hears of it.
    study->StopOverdue(clock_.Monotonic() + HeartbeatInterval(options_.lease));
    HPO_RETURN_IF_ERROR(SettleQueue(*study));
    if (study->wall_clock_to_store() >= kStoreWallClockEach) {
      HPO_RETURN_IF_ERROR(StoreWallClock(*study));
    }
    if (study->Finished() != was_finished) WakeAll();
  }
  return absl::OkStatus();
}

absl::Status TrialScheduler::ExpireLeases(StudyRuntime& study) {
  for (const HeldLease& lease : study.leases()) {
    switch (HealthOf(lease.renewed_at, clock_.Monotonic(), options_.lease)) {
      case LeaseHealth::kActive:
        break;
      case LeaseHealth::kSuspect:
        if (lease.suspect) break;
        HPO_RETURN_IF_ERROR(SetAttemptState(study, lease.trial, lease.attempt,
                                            AttemptState::kLeased, AttemptState::kSuspect));
        study.MarkSuspect(lease.trial, lease.attempt);
        break;
      case LeaseHealth::kExpired:
        HPO_RETURN_IF_ERROR(LoseLease(study, lease, LeaseLoss::kSilent));
        break;
    }
  }
  return absl::OkStatus();
}

// A trial that waits for a larger card ends as its OOM said once no such card has been there and
// free for two TTLs, while others are.
absl::Status TrialScheduler::SettleQueue(StudyRuntime& study) {
  const StudySpec spec = study.spec();
  for (const QueuedTrial& queued : study.queue()) {
    if (!queued.last_oom) continue;
    if (clock_.Monotonic() - queued.since <= 2 * options_.lease.ttl) continue;
    const std::optional<Bytes> largest =
        hpo::LargestUsable(workers_.Alive(), spec, queued.trial.params);
    if (!largest || *largest > queued.trial.min_capacity) continue;
    const auto work = [&](TrialTransaction& transaction) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(TrialRecord record,
                           transaction.trials.LoadTrial(queued.trial.id.number));
      if (record.trial.state != TrialState::kQueued || !record.last_oom) {
        return absl::OkStatus();
      }
      record.trial.outcome = record.last_oom;
      record.trial.state = StateOf(*record.last_oom);
      record.trial.ended = transaction.now;
      record.result_attempt = record.current_attempt;
      HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
      transaction.Changed(queued.trial.id.number, "finished");
      return absl::OkStatus();
    };
    HPO_RETURN_IF_ERROR(writer_.Write(study, work));
  }
  return absl::OkStatus();
}

absl::Status TrialScheduler::StoreWallClock(StudyRuntime& study) {
  const absl::Duration used = study.wall_clock_to_store();
  if (used <= absl::ZeroDuration()) return absl::OkStatus();
  const std::map<TrialNumber, absl::Duration> held = study.times_held(clock_.Monotonic());
  const auto work = [&](Database& database) -> absl::Status {
    TrialStore trials(database, study.id(), study.name());
    for (const auto& [number, time] : held) HPO_RETURN_IF_ERROR(trials.SetHeld(number, time));
    return StudyStore(database).AddWallClock(study.id(), used);
  };
  HPO_RETURN_IF_ERROR(store_->Write(work));
  study.WallClockStored(used);
  return absl::OkStatus();
}

}  // namespace hpo
