// How a lease goes on, and how it is lost.
#pragma once

#include "absl/status/statusor.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/trial.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Why a worker loses a lease that it has not given back.
enum class LeaseLoss {
  kSilent,      // it gave no sign of life
  kRestarted,   // another process of it has registered
  kNameTaken,   // another process took its name after it had fallen silent
  kNeverTaken,  // the assignment never reached it
  kProcessEnded,
  kCutOff,  // its connection has closed, and it did not come back
};

// Thread-safe. Codes: TrialWriter::Write. Where the trial's rows cannot be read, it is left alone
// from then on, and its lease is over.
class LeaseControl {
 public:
  // `state` outlives it.
  explicit LeaseControl(SchedulerState& state) : state_(state) {}

  // A sign of life of who holds `lease`, and what he is told. A lease of another database is not
  // ours to judge: kContinue.
  absl::StatusOr<Directive> Renew(const LeaseRef& lease);
  // The lease's TTL is over: it is lost at twice that.
  absl::Status Suspect(StudyRuntime& study, const HeldLease& lease);
  // Takes the lease back, unless a result or a beat came first: the trial has ended or is queued
  // again, as the retry policy says.
  absl::Status TakeBack(StudyRuntime& study, const HeldLease& lease, LeaseLoss why);

 private:
  absl::Status SetAttemptState(StudyRuntime& study, TrialNumber trial, AttemptNumber attempt,
                               AttemptState from, AttemptState to);

  SchedulerState& state_;
};

}  // namespace hpo::server
