// The training of one trial: epochs, effective batches, measurements, the best weights; and the
// recovery from running out of memory, at a constant effective batch.
//
// One effective batch is one optimizer step. An out-of-memory error anywhere before the optimizer's
// update undoes the batch (memory/oom_guard.h) and runs it again with half the micro-batch; the
// redone batch equals an undisturbed one with that micro-batch (training/effective_batch.h).
// Evaluation has a number of rows of its own to halve, which changes no result and does not slow
// training down.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/trainer_protocol.h"
#include "common/trial.h"
#include "worker/text/batcher.h"
#include "worker/trainer/event_sink.h"
#include "worker/trainer/memory/oom_guard.h"
#include "worker/trainer/memory/stage_log.h"
#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/training/adamw.h"
#include "worker/trainer/training/schedule.h"
#include "worker/trainer/training/text_task.h"
#include "worker/trainer/training/training_options.h"

namespace hpo {

// What the loop works on. All of it outlives the loop.
struct TrainLoopParts {
  const TrainerJob& job;
  const TrainingOptions& options;
  const TextData& data;
  int64_t max_positions;
  torch::Device device;
  DeviceMemory& memory;
  TextClassifier& model;
  AdamW& optimizer;
  StageLog& log;
  EventSink& events;
  StopSource& stops;
  // Keeps the model's weights, those after `step` optimizer steps, as the best so far.
  std::function<absl::Status(int64_t step)> save_best;
};

struct TrainLoopResult {
  // nullopt: stopped on request, without a result.
  std::optional<TrialOutcome> outcome;
  MemoryPlan final_plan;
  bool clean = true;  // see OutcomeMessage
};

// Not thread-safe; runs once.
class TrainLoop {
 public:
  TrainLoop(TrainLoopParts parts, const MemoryPlan& plan);

  // Trains to the end, or until something ends it. Throws what torch throws, but for memory.
  TrainLoopResult Run();

 private:
  // Why the attempt is over, as TrainLoopResult::outcome.
  struct Ending {
    std::optional<TrialOutcome> outcome;
  };

  std::optional<Ending> RunEpoch(int64_t epoch);
  std::optional<Ending> RunStep(const BatchRows& rows);
  std::optional<Ending> Measure();
  std::optional<Ending> CheckStop() const;
  // Runs `work` until memory suffices, calling `shrink` before each redo; `shrink` returns false
  // when there is nothing smaller.
  std::optional<Ending> RunGuarded(absl::FunctionRef<void()> work,
                                   absl::FunctionRef<bool()> shrink);
  // After a fault: nullopt when the work is smaller now and may be redone.
  std::optional<Ending> Recover(const BatchAttempt& attempt, absl::FunctionRef<bool()> shrink);
  // Half the micro-batch, for training; half the rows, for evaluation.
  bool ShrinkPlan();
  bool ShrinkEvaluation();

  void ReportProgress(double loss);
  bool Improves(const Metrics& metrics) const;

  TrainLoopParts parts_;
  MemoryPlan plan_;
  int64_t evaluation_rows_;  // at a time
  int64_t total_steps_;
  LinearSchedule schedule_;
  Bytes baseline_;  // live bytes between steps: parameters and moments
  bool clean_ = true;

  int64_t step_ = 0;  // optimizer steps done
  int64_t measured_step_ = -1;
  double epoch_ = 0.0;     // epochs done, with the current one's share
  double loss_sum_ = 0.0;  // of the steps since the last measurement
  int64_t loss_steps_ = 0;
  double gradient_norm_ = 0.0;
  std::optional<Metrics> best_;
  absl::Duration last_progress_;
};

}  // namespace hpo
