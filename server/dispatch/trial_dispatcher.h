// A worker asks for a trial: it gets an assignment, or what keeps it from one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "server/dispatch/offer.h"
#include "server/dispatch/preflight_desk.h"
#include "server/dispatch/preflight_policy.h"
#include "server/dispatch/trial_granter.h"
#include "server/dispatch/trial_proposer.h"
#include "server/leases/lease_control.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Thread-safe.
class TrialDispatcher {
 public:
  // All outlive it.
  TrialDispatcher(SchedulerState& state, LeaseControl& leases, PreflightDesk& desk)
      : state_(state), desk_(desk), granter_(state, leases), proposer_(state, granter_, desk) {}
  TrialDispatcher(const TrialDispatcher&) = delete;

  // Codes: WorkerApi.
  absl::StatusOr<AcquireResult> AcquireTrial(const std::string& session,
                                             const std::string& request_id, absl::Duration wait,
                                             Bytes capacity,
                                             const std::function<bool()>& cancelled);

 private:
  // `generation` of the work signal: what changes from then on is news.
  absl::StatusOr<Offer> Try(const Asker& asker, int64_t generation);
  // Those that the asker may run trials of. Of each other one it is told why not.
  std::vector<StudyRuntime*> AbleStudies(const WorkerFacts& facts, int64_t generation,
                                         Offer& offer);
  // Of one study. Its obstacle is without the study's name.
  absl::StatusOr<Offer> TakeQueued(StudyRuntime& study, const Asker& asker);
  // Whether the asker gets the queued trial, or dry-runs it first. Holds it for that.
  PreflightStep StepForQueued(StudyRuntime& study, const Asker& asker, const Trial& trial,
                              const Placement& placement);
  // What is held for the asker and that none of `able` can give it any more.
  void DropStale(const Asker& asker, const std::vector<StudyRuntime*>& able);
  // Whether every study that the asker serves, and that is not finished, is blocked.
  bool BlocksAll(const WorkerFacts& facts, int64_t generation) const;
  Assignment Complete(Assignment assignment) const;

  SchedulerState& state_;
  PreflightDesk& desk_;
  TrialGranter granter_;
  TrialProposer proposer_;
};

}  // namespace hpo::server
