// The gradients of one effective batch: what one optimizer step learns from.
#pragma once

#include <cstdint>
#include <span>

#include "common/study/trial.h"
#include "worker/text/batching/batcher.h"
#include "worker/trainer/data/batch_ahead.h"
#include "worker/trainer/memory/stage_log.h"
#include "worker/trainer/tasks/task.h"

namespace hpo::trainer {

struct EffectiveBatch {
  const text::BatchRows& rows;
  MemoryPlan plan;
  // Random numbers (dropout) are a function of (seed, step) and of how the batch is split.
  uint64_t seed = 0;
  int64_t step = 0;
  double loss_scale = 1.0;  // of the gradients; see LossScale
  // Puts the next piece together while one runs; null: each in its turn.
  BatchAhead* ahead = nullptr;
  const text::BatchRows* next = nullptr;  // the batch after this one, where there is one
};

// Adds the gradient of the batch's loss, the mean over what its rows weigh, to the parameters of
// the task's model, in parts of plan.micro_batch rows, and returns the loss, a float32 scalar on
// the device. Every part back-propagates its sum of losses over the weight of the whole batch, so
// that the result is the same however it is split (up to rounding; bitwise for equal splits on a
// CPU). May be repeated after clearing the gradients. Throws what torch throws. `log` is told the
// phases "forward" and "backward".
torch::Tensor AddGradients(Task& task, const EffectiveBatch& batch, torch::Device device,
                           StageLog& log);

// The same, and reads the loss: waits for the device.
double ComputeGradients(Task& task, const EffectiveBatch& batch, torch::Device device,
                        StageLog& log);

}  // namespace hpo::trainer
