// The training of one trial: epochs, effective batches, measurements, the best weights; and the
// recovery from running out of memory, at a constant effective batch.
//
// One effective batch is one optimizer step (training/train_steps.h). An out-of-memory error
// anywhere before the optimizer's update undoes the batch (memory/oom_guard.h) and, as
// memory/recovery_policy.h decides, runs it again in smaller parts (training/trial_memory.h); the
// redone batch equals an undisturbed one with that micro-batch (training/effective_batch.h).
// Evaluation has a number of rows of its own to halve, which changes no result and does not slow
// training down.
//
// Before the first step the batch that needs the most is probed: run, compared with the prediction
// and thrown away, so that what does not fit is found out where it is cheap. No parameter and no
// random number of the trial depends on it.
#pragma once

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/trainer_protocol.h"
#include "common/study/trial.h"
#include "worker/text/batching/batcher.h"
#include "worker/trainer/checkpoints/loop_state.h"
#include "worker/trainer/training/train_course.h"
#include "worker/trainer/training/train_loop_parts.h"
#include "worker/trainer/training/train_steps.h"
#include "worker/trainer/training/trial_memory.h"

namespace hpo::trainer {

struct TrainLoopResult {
  // nullopt: stopped on request, without a result.
  std::optional<TrialOutcome> outcome;
  MemoryPlan final_plan;
  bool clean = true;      // see OutcomeMessage
  bool best_kept = true;  // the last time that it was tried, by an earlier attempt perhaps
};

// Does what training/train_course.h says. Not thread-safe; runs once.
class TrainLoop {
 public:
  TrainLoop(TrainLoopParts parts, const MemoryPlan& plan);

  // Trains to the end, or until something ends it, from where an earlier attempt has come to.
  // Throws what torch throws, but for memory.
  TrainLoopResult Run();

 private:
  // Goes on where an earlier attempt was, as its checkpoint says.
  void Resume();
  TrainPlace Place() const;
  TrainEvent Do(TrainAction action);
  // Both parts of the probe, and the comparison; nothing with the policy kOff.
  TrainEvent Probe();
  TrainEvent LookForStop();
  TrainEvent Train();
  TrainEvent Measure();
  TrainEvent Save();

  // Before anything is measured or saved; reports progress where that is due.
  std::optional<TrialOutcome> ReadLosses();
  void Record(Metrics metrics);
  TrainEvent Fail(std::optional<TrialOutcome> failure);
  bool IsProgressDue() const;
  // How long the loop may take to end from here on where a stop comes.
  absl::Duration StopTime() const;

  TrainLoopParts parts_;
  LoopState state_;  // its plan and evaluation rows are those in force
  const int64_t batches_per_epoch_;
  const int64_t total_steps_;
  TrainSteps steps_;
  TrialMemory memory_;
  std::optional<TrialOutcome> failure_;
  std::vector<text::BatchRows> batches_;  // of epoch drawn_epoch_
  int64_t drawn_epoch_ = -1;

  absl::Duration last_progress_;
  std::optional<absl::Duration> looked_for_stop_at_;
  absl::Duration longest_turn_;  // from one look to the next
  bool evaluated_ = false;       // in this attempt, so that a turn may have had it
};

}  // namespace hpo::trainer
