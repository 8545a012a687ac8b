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
    bool may_pass = false;  // the obstacle, by itself or as other trials of the study run
  };
  // A suggestion, with what it was made from.
  struct Proposal {
    absl::StatusOr<Suggestion> suggestion = absl::UnknownError("not asked");
    MemoryKnowledge knowledge;
    AskContext context;
  };

  absl::Status TakeBackUnlessThere(const std::string& session, const LeaseRef& lease);
  // What the same request was given before, while its lease lives.
  absl::StatusOr<std::optional<Assignment>> Replay(const Asker& asker);
  // `generation` of the work signal: what changes from then on is news.
  absl::StatusOr<Answer> Try(const Asker& asker, int64_t generation);
  // Those that the asker may run trials of. Of each other one it is told why not.
  std::vector<StudyRuntime*> AbleStudies(const WorkerFacts& facts, int64_t generation,
                                         Answer& answer);
  // Of one study. Its obstacle is without the study's name.
  absl::StatusOr<Answer> TakeQueued(StudyRuntime& study, const Asker& asker);
  absl::StatusOr<Answer> Propose(StudyRuntime& study, const Asker& asker);
  Proposal Suggest(StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(study.sampler.propose_mutex());
  // What others hold of the asker's device, where a trial could be proposed without them; else 0.
  Bytes HeldByOthers(StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(study.sampler.propose_mutex());
  // Whether every study that the asker serves, and that is not finished, is blocked.
  bool BlocksAll(const WorkerFacts& facts, int64_t generation) const;
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
