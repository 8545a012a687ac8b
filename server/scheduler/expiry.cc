// TrialScheduler: what happens because time passes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/placement/capability.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo {
namespace {

constexpr absl::Duration kStoreWallClockEach = absl::Seconds(10);

}  // namespace

absl::Status TrialScheduler::Tick() {
  // Nobody may be asking who would find out that the disk works again.
  if (!store_->trouble().empty()) store_->Probe();
  absl::Status first = CatchUp();
  for (StudyRuntime* study : Studies()) {
    first.Update(Annotate(TickStudy(*study), absl::StrCat("study ", study->name())));
  }
  first.Update(ForgetOld());
  return first;
}

absl::Status TrialScheduler::TickStudy(StudyRuntime& study) {
  const bool was_finished = study.Finished();
  study.Account(clock_.Monotonic());
  absl::Status first;
  for (const HeldLease& lease : study.leases()) {
    const absl::Status checked = ExpireLease(study, lease);
    if (!Quarantined(study, lease.trial, checked)) first.Update(checked);
  }
  // One beat early, as that is when the worker hears of it.
  study.StopOverdue(clock_.Monotonic() + HeartbeatInterval(options_.lease));
  const StudySpec spec = study.spec();
  for (const QueuedTrial& queued : study.queue()) {
    const absl::Status settled = SettleQueued(study, spec, queued);
    if (!Quarantined(study, queued.trial.id.number, settled)) first.Update(settled);
  }
  if (study.wall_clock_to_store() >= kStoreWallClockEach) first.Update(StoreWallClock(study));
  if (study.Finished() != was_finished) WakeAll();
  return first;
}

absl::Status TrialScheduler::ExpireLease(StudyRuntime& study, const HeldLease& lease) {
  switch (HealthOf(lease.renewed_at, clock_.Monotonic(), options_.lease)) {
    case LeaseHealth::kActive:
      return absl::OkStatus();
    case LeaseHealth::kSuspect:
      if (lease.suspect) return absl::OkStatus();
      HPO_RETURN_IF_ERROR(SetAttemptState(study, lease.trial, lease.attempt, AttemptState::kLeased,
                                          AttemptState::kSuspect));
      study.MarkSuspect(lease.trial, lease.attempt);
      return absl::OkStatus();
    case LeaseHealth::kExpired:
      return LoseLease(study, lease, LeaseLoss::kSilent);
  }
  return absl::OkStatus();
}

// A trial that waits for a larger card ends as its OOM said once no such card has been there and
// free for two TTLs, while others are.
absl::Status TrialScheduler::SettleQueued(StudyRuntime& study, const StudySpec& spec,
                                          const QueuedTrial& queued) {
  if (!queued.last_oom) return absl::OkStatus();
  if (clock_.Monotonic() - queued.since <= 2 * options_.lease.ttl) return absl::OkStatus();
  const std::optional<Bytes> largest =
      hpo::LargestUsable(workers_.Alive(), spec, queued.trial.params);
  if (!largest || *largest > queued.trial.min_capacity) return absl::OkStatus();
  return writer_.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(queued.trial.id.number));
    if (record.trial.state != TrialState::kQueued || !record.last_oom) return absl::OkStatus();
    record.trial.outcome = record.last_oom;
    record.trial.state = StateOf(*record.last_oom);
    record.trial.ended = transaction.now;
    record.result_attempt = record.current_attempt;
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
    transaction.Changed(queued.trial.id.number, "finished");
    return absl::OkStatus();
  });
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
