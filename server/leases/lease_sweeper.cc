// Tested by tests/server/leases/lost_worker_test.cc.
#include "server/leases/lease_sweeper.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/storage/answer_store.h"
#include "server/storage/event_log.h"
#include "server/storage/study_store.h"
#include "server/storage/trial_store.h"
#include "server/studies/blocked_study.h"
#include "server/studies/study_loader.h"
#include "server/studies/trial_writer.h"
#include "server/workers/lease.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kStoreWallClockEach = absl::Seconds(10);
constexpr absl::Duration kForgetEach = absl::Minutes(10);

}  // namespace

absl::Status LeaseSweeper::Tick() {
  // Nobody may be asking who would find out that the disk works again.
  if (!state_.store->trouble().empty()) state_.store->Probe();
  absl::Status first = CatchUp();
  first.Update(TakeBackFromLost());
  for (StudyRuntime* study : state_.studies.All()) {
    first.Update(Annotate(TickStudy(*study), absl::StrCat("study ", study->name())));
  }
  first.Update(ForgetOld());
  return first;
}

absl::Status LeaseSweeper::CatchUp() {
  if (!state_.store->behind()) return absl::OkStatus();
  spdlog::error("the database holds a write that was reported as failed: reading it again");
  // Nobody is between the commit of a changed study and its publication.
  absl::MutexLock lock(&state_.studies.change_mutex());
  HPO_RETURN_IF_ERROR(
      state_.store->CatchUp([this](Database& database) { return LoadStudies(state_, database); }));
  state_.work.Raise();
  return absl::OkStatus();
}

absl::Status LeaseSweeper::TakeBackFromLost() {
  const absl::Duration grace = AttendanceGrace(state_.options.lease);
  for (const LostWorker& lost : state_.workers.Lost()) {
    const LeaseLoss why = lost.has_ended ? LeaseLoss::kProcessEnded : LeaseLoss::kCutOff;
    for (StudyRuntime* study : state_.studies.All()) {
      for (const HeldLease& lease : study->open.leases()) {
        if (lease.worker != lost.process.name || lease.instance_key != lost.process.instance_key) {
          continue;
        }
        const bool heard = state_.clock.Monotonic() - lease.heard_at <= grace;
        if (!lost.has_ended && heard) continue;
        HPO_RETURN_IF_ERROR(
            Annotate(leases_.TakeBack(*study, lease, why), absl::StrCat("study ", study->name())));
      }
    }
    if (!lost.has_ended) continue;
    spdlog::warn("worker {} is lost: its process has ended", lost.process.name);
    state_.workers.Bury(lost.process);
  }
  return absl::OkStatus();
}

absl::Status LeaseSweeper::TickStudy(StudyRuntime& study) {
  const bool was_finished = study.standing().finished;
  study.open.Account(state_.clock.Monotonic());
  absl::Status first;
  for (const HeldLease& lease : study.open.leases()) first.Update(CheckLease(study, lease));
  const StudySpec spec = study.spec();
  if (spec.budget.trial_wall_clock) {
    // One beat early, as that is when the worker hears of it; but of a limit that is shorter than a
    // few beats most is the trial's.
    const absl::Duration limit = *spec.budget.trial_wall_clock;
    const absl::Duration early = std::min(HeartbeatInterval(state_.options.lease), limit / 10);
    study.open.StopOverdue(limit, state_.clock.Monotonic() + early);
  }
  for (const QueuedTrial& queued : study.open.queue()) {
    const absl::Status settled = SettleQueued(study, spec, queued);
    if (!study.QuarantineIfUnreadable(queued.trial.id.number, settled)) first.Update(settled);
  }
  if (study.open.wall_clock_to_store() >= kStoreWallClockEach) first.Update(StoreWallClock(study));
  if (study.standing().finished != was_finished) state_.work.Raise();
  return first;
}

absl::Status LeaseSweeper::CheckLease(StudyRuntime& study, const HeldLease& lease) {
  switch (HealthOf(lease.renewed_at, state_.clock.Monotonic(), state_.options.lease)) {
    case LeaseHealth::kActive:
      return absl::OkStatus();
    case LeaseHealth::kSuspect:
      return lease.suspect ? absl::OkStatus() : leases_.Suspect(study, lease);
    case LeaseHealth::kExpired:
      return leases_.TakeBack(study, lease, LeaseLoss::kSilent);
  }
  return absl::OkStatus();
}

// A trial that waits for a larger card ends as its OOM said once no such card has been there and
// free for two TTLs, while others are.
absl::Status LeaseSweeper::SettleQueued(StudyRuntime& study, const StudySpec& spec,
                                        const QueuedTrial& queued) {
  if (!queued.last_oom) return absl::OkStatus();
  const absl::Duration waited = state_.clock.Monotonic() - queued.since;
  if (waited <= 2 * state_.options.lease.ttl) return absl::OkStatus();
  if (!EndsByWaiting(state_, spec, queued)) return absl::OkStatus();
  return state_.writer.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
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

void LeaseSweeper::StoreWallClocks() {
  for (StudyRuntime* study : state_.studies.All()) {
    study->open.Account(state_.clock.Monotonic());
    if (const absl::Status stored = StoreWallClock(*study); !stored.ok()) {
      spdlog::error("{}: wall clock not stored: {}", study->name(), stored.ToString());
    }
  }
}

absl::Status LeaseSweeper::StoreWallClock(StudyRuntime& study) {
  const absl::Duration used = study.open.wall_clock_to_store();
  if (used <= absl::ZeroDuration()) return absl::OkStatus();
  const std::map<TrialNumber, absl::Duration> held =
      study.open.times_held(state_.clock.Monotonic());
  const auto work = [&](Database& database) -> absl::Status {
    TrialStore trials(database, study.id(), study.name());
    for (const auto& [number, time] : held) HPO_RETURN_IF_ERROR(trials.SetHeld(number, time));
    return StudyStore(database).AddWallClock(study.id(), used);
  };
  HPO_RETURN_IF_ERROR(state_.store->Write(work));
  study.open.WallClockStored(used);
  return absl::OkStatus();
}

// A write per study and not one for all: each holds up the other writers.
absl::Status LeaseSweeper::ForgetOld() {
  const absl::Duration now = state_.clock.Monotonic();
  if (now - forgot_at_ < kForgetEach) return absl::OkStatus();
  forgot_at_ = now;
  HPO_RETURN_IF_ERROR(state_.store->Write(
      [&](Database& database) { return AnswerStore(database).ForgetOld(state_.clock.Now()); }));
  for (const StudyRuntime* study : state_.studies.All()) {
    const int64_t before = study->changes.last() - kEventLimit.most;
    if (before <= 0) continue;
    HPO_RETURN_IF_ERROR(state_.store->Write(
        [&](Database& database) { return EventLog(database, study->id()).Forget(before); }));
  }
  return absl::OkStatus();
}

}  // namespace hpo::server
