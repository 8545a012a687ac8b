// The optimizer steps of a training, and their losses.
//
// On a GPU no step waits for its loss: losses stay in the GPU's memory until progress, a
// measurement or a checkpoint needs them (training/step_scalars.h). Only then a loss that is not
// finite is found; the error names its step. With float16 each loss is read at once, as the loss
// scale follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "common/study/trial.h"
#include "worker/text/batching/batcher.h"
#include "worker/trainer/checkpoints/loop_state.h"
#include "worker/trainer/data/batch_ahead.h"
#include "worker/trainer/optimizers/schedule.h"
#include "worker/trainer/training/effective_batch.h"
#include "worker/trainer/training/step_scalars.h"
#include "worker/trainer/training/train_loop_parts.h"

namespace hpo::trainer {

// One training's. Not thread-safe. Throws what torch throws.
class TrainSteps {
 public:
  // Counts steps and sums losses in `state`. All outlive this.
  TrainSteps(const TrainLoopParts& parts, LoopState& state, int64_t total_steps);

  // The clipped gradients of one effective batch, with the plan in force. May be repeated after
  // they are cleared. `next`: the batch after it, where there is one.
  void Compute(const text::BatchRows& rows, const text::BatchRows* next);
  // The same of a step that will not be taken.
  void Probe(const text::BatchRows& rows) { ComputeRead(BatchOf(rows, nullptr)); }

  // The optimizer step of what was computed. Fails where its loss is read and is not finite.
  std::optional<Failed> Apply();
  // Of float16: the last step counts, but its gradients were out of range and changed nothing.
  bool skipped() const { return skipped_; }

  // Sums up losses that are not read yet. Fails where one is not finite.
  std::optional<Failed> ReadLosses();
  // No step goes on before they are read.
  bool full() const { return unread_.has_value() && unread_->full(); }
  // The loss that was read last, once; nullopt: none since, or its step was skipped.
  std::optional<double> TakeLoss() { return std::exchange(loss_, std::nullopt); }

 private:
  bool reads_late() const {
    return unread_.has_value() && state_.plan.precision != Precision::kFloat16;
  }
  EffectiveBatch BatchOf(const text::BatchRows& rows, const text::BatchRows* next);
  StepScalars::Step ComputeRead(const EffectiveBatch& batch);
  void AddLoss(double loss);
  // `step`: its number, from 1.
  Failed Diverged(const StepScalars::Step& read, int64_t step) const;

  const TrainLoopParts& parts_;
  LoopState& state_;
  const int64_t total_steps_;
  const LinearSchedule schedule_;
  std::optional<StepScalars> unread_;  // where losses are read late
  StepScalars::Step computed_;         // where they are not
  bool skipped_ = false;
  std::optional<double> loss_;
  BatchAhead ahead_;
};

}  // namespace hpo::trainer
