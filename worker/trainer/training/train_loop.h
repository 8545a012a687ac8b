// The training of one trial: epochs, effective batches, measurements, the best weights; and the
// recovery from running out of memory, at a constant effective batch.
//
// One effective batch is one optimizer step. An out-of-memory error anywhere before the optimizer's
// update undoes the batch (memory/oom_guard.h) and, as memory/recovery_policy.h decides, runs it
// again in smaller parts; the redone batch equals an undisturbed one with that micro-batch
// (training/effective_batch.h). Evaluation has a number of rows of its own to halve, which changes
// no result and does not slow training down.
//
// On a card no step waits for a number: losses stay there until somebody wants them, for progress,
// a measurement or a checkpoint (training/step_scalars.h). Then a loss that is not finite is found,
// and the step told that had it. Float16, whose loss scale needs each, reads at every step.
//
// Before the first step the batch that needs the most is probed: run, compared with the prediction
// and thrown away, so that what does not fit is found out where it is cheap. No parameter and no
// random number of the trial depends on it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/protocol/trainer_protocol.h"
#include "common/study/trial.h"
#include "worker/channel/event_sink.h"
#include "worker/text/batching/batcher.h"
#include "worker/trainer/checkpoints/loop_state.h"
#include "worker/trainer/checkpoints/trial_checkpoints.h"
#include "worker/trainer/data/batch_ahead.h"
#include "worker/trainer/data/training_options.h"
#include "worker/trainer/memory/growth_watch.h"
#include "worker/trainer/memory/oom_guard.h"
#include "worker/trainer/memory/replanner.h"
#include "worker/trainer/memory/stage_log.h"
#include "worker/trainer/memory/thrash_guard.h"
#include "worker/trainer/optimizers/optimizer.h"
#include "worker/trainer/optimizers/schedule.h"
#include "worker/trainer/tasks/task.h"
#include "worker/trainer/training/effective_batch.h"
#include "worker/trainer/training/step_scalars.h"

namespace hpo::trainer {

// What the loop works on. All of it outlives the loop.
struct TrainLoopParts {
  const TrainerJob& job;
  const TrainingOptions& options;
  const TextData& data;
  const memory::EstimateInput& estimate_input;
  torch::Device device;
  bool reads_late = false;  // see TrialDevice
  DeviceMemory& memory;
  Task& task;
  Optimizer& optimizer;
  StageLog& log;
  EventSink& events;
  StopSource& stops;
  // Keeps the model's weights, those after `step` optimizer steps, as the best so far. False: it
  // could not, and has said so.
  std::function<bool(int64_t step)> save_best;
  TrialCheckpoints* checkpoints = nullptr;  // null: nothing is taken up, nothing saved
};

struct TrainLoopResult {
  // nullopt: stopped on request, without a result.
  std::optional<TrialOutcome> outcome;
  MemoryPlan final_plan;
  bool clean = true;      // see OutcomeMessage
  bool best_kept = true;  // the last time that it was tried, by an earlier attempt perhaps
};

// Not thread-safe; runs once.
class TrainLoop {
 public:
  TrainLoop(TrainLoopParts parts, const MemoryPlan& plan);

  // Trains to the end, or until something ends it, from where an earlier attempt has come to.
  // Throws what torch throws, but for memory.
  TrainLoopResult Run();

 private:
  // Why the attempt is over, as TrainLoopResult::outcome.
  struct Ending {
    std::optional<TrialOutcome> outcome;
  };

  // Both parts of the probe, and the comparison; nothing with the policy kOff.
  std::optional<Ending> Probe();
  void JudgeProbe();
  // The rest of epoch state_.epoch.
  std::optional<Ending> RunEpoch();
  std::optional<Ending> RunStep(const text::BatchRows& rows);
  // The same, but for what the loss was: unread_ has it.
  std::optional<Ending> RunUnreadStep(const text::BatchRows& rows);
  // Takes what unread_ has into the sums. Before anything is measured or saved.
  std::optional<Ending> ReadLosses();
  Ending Diverged(double loss, double norm, int64_t step) const;
  bool IsSkipped(double loss);
  void CountStep();
  void AddLoss(double loss);
  void UpdateParameters();
  void WatchStep();
  std::optional<Ending> Measure();
  // Gradients of one effective batch, clipped; returns its loss.
  double ComputeClipped(const text::BatchRows& rows, const MemoryPlan& plan);
  EffectiveBatch BatchOf(const text::BatchRows& rows, const MemoryPlan& plan);
  std::optional<Ending> CheckStop();
  // How long the loop may take to end from here on where a stop comes.
  absl::Duration StopTime() const;
  // Goes on where an earlier attempt was, as its checkpoint says.
  void TakeUp();
  std::optional<Ending> SaveIfDue();
  // Whether the earlier attempt's plan was found under a limit that is no larger than this one's.
  bool KeepsPlanOf(const LoopState& state) const;
  // Runs `work` until memory suffices, calling `shrink` before each redo; `shrink` returns false
  // when there is nothing smaller.
  std::optional<Ending> RunGuarded(absl::FunctionRef<void()> work,
                                   absl::FunctionRef<bool()> shrink);
  // After a fault: nullopt when the work may be redone.
  std::optional<Ending> Recover(const BatchAttempt& attempt, absl::FunctionRef<bool()> shrink);
  // Does what DecideRecovery says; false when that is to end.
  bool TakeAction(OomKind kind, absl::FunctionRef<bool()> shrink);
  // A smaller plan, for training; half the rows, for evaluation.
  bool ShrinkPlan();
  bool ShrinkEvaluation();
  void UsePlan(const MemoryPlan& plan, const std::string& why);
  // At the end of `stage`, a quiet point (memory/growth_watch.h).
  void WatchMemory(const char* stage);
  void WatchThrashing();

  bool IsProgressDue() const;
  void ReportProgress(double loss);
  bool Improves(const Metrics& metrics) const;
  // So many measurements in a row brought nothing better that the study asks to end here.
  bool IsStale() const;
  // Epochs done, with the share of the one that runs.
  double EpochsDone() const;

  TrainLoopParts parts_;
  LoopState state_;  // its plan and evaluation rows are those in force
  int64_t batches_per_epoch_;
  int64_t total_steps_;
  LinearSchedule schedule_;
  Replanner replanner_;
  std::optional<StepScalars> unread_;  // where losses are read late
  Bytes baseline_;                     // live bytes between steps: parameters and moments
  bool clean_ = true;
  std::map<OomKind, int64_t> redos_;
  bool workspaces_renewed_ = false;
  bool renew_workspaces_ = false;  // before the next redo
  ThrashGuard thrash_guard_;
  GrowthWatch growth_watch_;

  double gradient_norm_ = 0.0;
  BatchAhead ahead_;
  const text::BatchRows* next_ = nullptr;  // after the batch that runs
  absl::Duration last_progress_;
  std::optional<absl::Duration> looked_for_stop_at_;
  absl::Duration longest_turn_;  // from one look to the next
  bool evaluated_ = false;       // in this attempt, so that a turn may have had it
};

}  // namespace hpo::trainer
