// Which of a study's queued trials a worker is to run next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "server/placement/placement.h"
#include "server/placement/smaller_cards.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Whether the worker may run trials of the study: CheckServes and CheckDigests.
//   FailedPrecondition  it may not; names the study
absl::Status CheckOffer(const StudyRuntime& study, const WorkerFacts& facts);

// The queue of one study as one worker sees it. One owner thread.
class WaitingTrials {
 public:
  // `spec` is the study's as it was when `queue` was read. All but the queue outlive it.
  WaitingTrials(SchedulerState& state, StudyRuntime& study, const StudySpec& spec,
                const WorkerFacts& facts, std::vector<QueuedTrial> queue);

  struct Choice {
    std::optional<Trial> trial;  // nullopt: the worker can run none of them
    Placement placement;
    std::string obstacle;   // where there is no trial: why not the last one that was looked at
    bool may_pass = false;  // the worker may run one of them once others leave its device
  };
  // In the order of smaller_cards.h. Ends what fits nowhere.
  //   Codes: TrialWriter::Write
  absl::StatusOr<Choice> Choose();
  // The trial is another's.
  void Remove(TrialNumber number);

 private:
  // nullopt: the worker cannot run it; `choice` says why, or it was ended as it fits nowhere.
  absl::StatusOr<std::optional<Placement>> Place(const Trial& trial, Choice& choice);
  absl::Status EndAsPredicted(const Trial& trial, const Placement& placement);

  SchedulerState& state_;
  StudyRuntime& study_;
  const StudySpec& spec_;
  const WorkerFacts& facts_;
  std::vector<QueuedTrial> queue_;
  const MemoryKnowledge knowledge_;
  const SmallerCards smaller_;
};

}  // namespace hpo::server
