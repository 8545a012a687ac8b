// What happens because time passes.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/study/study.h"
#include "server/leases/lease_control.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// One thread calls it.
class LeaseSweeper {
 public:
  // Both outlive the sweeper.
  LeaseSweeper(SchedulerState& state, LeaseControl& leases) : state_(state), leases_(leases) {}

  // Takes back expired leases and those of lost workers, stops trials that have used up their time,
  // settles those that wait for a card that is gone, stores the wall clock, forgets what is kept
  // only for a while; reads memory again where rows are ahead of it (Store::behind). Goes on with
  // the other studies after the first error, which it returns.
  absl::Status Tick();

  // Brings each study's wall clock up to now and stores it. What fails is logged.
  void StoreWallClocks();

 private:
  absl::Status CatchUp();
  // What processes held that have ended, or whose connection has closed for good.
  absl::Status TakeBackFromLost();
  absl::Status TickStudy(StudyRuntime& study);
  absl::Status CheckLease(StudyRuntime& study, const HeldLease& lease);
  absl::Status SettleQueued(StudyRuntime& study, const StudySpec& spec, const QueuedTrial& queued);
  absl::Status StoreWallClock(StudyRuntime& study);
  // Request ids and changes beyond common/base/limits.h, every ten minutes.
  absl::Status ForgetOld();

  SchedulerState& state_;
  LeaseControl& leases_;
  absl::Duration forgot_at_;  // monotonic
};

}  // namespace hpo::server
