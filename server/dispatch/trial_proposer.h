// A new trial for a worker, as the study's sampler suggests it.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "sampler/api/sampler.h"
#include "server/dispatch/offer.h"
#include "server/dispatch/preflight_desk.h"
#include "server/dispatch/trial_granter.h"
#include "server/placement/misfit_advice.h"
#include "server/placement/placement.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Thread-safe. No database lock is held while a sampler thinks: a suggestion is made first, then
// one short transaction writes trial, lease and suggestion.
class TrialProposer {
 public:
  // All outlive it.
  TrialProposer(SchedulerState& state, TrialGranter& granter, PreflightDesk& desk)
      : state_(state), granter_(granter), desk_(desk) {}

  // The obstacle is without the study's name.
  //   Codes: TrialWriter::Write
  absl::StatusOr<Offer> Propose(StudyRuntime& study, const Asker& asker);

  // Looks for what the worker, which is busy, would be given next, and holds it where it is to be
  // dry-run first. False: the study has nothing for the worker.
  bool LookAhead(StudyRuntime& study, const WorkerFacts& facts);

 private:
  // A suggestion, with what it was made from.
  struct Proposal {
    absl::StatusOr<sampler::Suggestion> suggestion = absl::UnknownError("not asked");
    MemoryKnowledge knowledge;
    sampler::AskContext context;
  };

  // A configuration on its way to the worker.
  struct Chosen {
    ParamMap params;
    SuggestionRecord origin;
    Placement placement;
  };

  // What is held of the study for the asker: granted, or why not yet. nullopt: nothing is, any
  // more.
  absl::StatusOr<std::optional<Offer>> TakeHeld(StudyRuntime& study, const StudySpec& spec,
                                                const Asker& asker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(study.sampler.propose_mutex());
  absl::StatusOr<Offer> Grant(StudyRuntime& study, const StudySpec& spec, const Asker& asker,
                              const Chosen& chosen)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(study.sampler.propose_mutex());
  void Hold(const StudyRuntime& study, const WorkerFacts& facts, const Chosen& chosen);
  Chosen Place(const StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts,
               const Proposal& proposal) const;

  Proposal Suggest(StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(study.sampler.propose_mutex());
  // What others hold of the asker's device, where a trial could be proposed without them; else 0.
  Bytes HeldByOthers(StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(study.sampler.propose_mutex());

  SchedulerState& state_;
  TrialGranter& granter_;
  PreflightDesk& desk_;
  MisfitAdvisor advisor_;
};

}  // namespace hpo::server
