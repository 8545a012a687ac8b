// A worker asks for a trial: it gets an assignment, or what keeps it from one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "server/dispatch/waiting_trials.h"
#include "server/leases/lease_control.h"
#include "server/placement/misfit_advice.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"
#include "server/studies/trial_writer.h"

namespace hpo {

// Thread-safe. No database lock is held while a sampler thinks: a suggestion is made first, then
// one short transaction writes trial, lease and suggestion.
class TrialDispatcher {
 public:
  // Both outlive it.
  TrialDispatcher(SchedulerState& state, LeaseControl& leases) : state_(state), leases_(leases) {}

  // Codes: WorkerApi.
  absl::StatusOr<AcquireResult> AcquireTrial(const std::string& session,
                                             const std::string& request_id, absl::Duration wait,
                                             Bytes capacity,
                                             const std::function<bool()>& cancelled);

 private:
  struct Asker {
    WorkerFacts facts;
    std::string request_id;
  };
  // Without an assignment: what keeps the asker from one; empty: nothing that could be helped.
  struct Answer {
    std::optional<Assignment> assignment;
    std::string obstacle;
    // All of its budget is handed out, and so the asker waits for what runs.
    const StudyRuntime* handed_out = nullptr;
  };

  absl::Status TakeBackUnlessThere(const std::string& session, const LeaseRef& lease);
  // What the same request was given before, while its lease lives.
  absl::StatusOr<std::optional<Assignment>> Replay(const Asker& asker);
  absl::StatusOr<Answer> Try(const Asker& asker);
  // Of one study. Its obstacle is without the study's name.
  absl::StatusOr<Answer> TakeQueued(StudyRuntime& study, const Asker& asker);
  absl::StatusOr<Answer> Propose(StudyRuntime& study, const Asker& asker);
  // The attempt that holds the trial from this transaction on.
  absl::StatusOr<AttemptRecord> Start(TrialTransaction& transaction, const StudyRuntime& study,
                                      const Asker& asker, TrialRecord& record,
                                      const Placement& placement);
  void Started(StudyRuntime& study, const WorkerFacts& facts);
  AcquireResult EmptyAnswer(const WorkerFacts& facts) const;
  Assignment Complete(Assignment assignment) const;

  SchedulerState& state_;
  LeaseControl& leases_;
  MisfitAdvisor advisor_;
};

}  // namespace hpo
