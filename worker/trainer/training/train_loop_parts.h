// What a training works on.
#pragma once

#include <functional>

#include "common/protocol/trainer_protocol.h"
#include "memory/need/memory_estimate.h"
#include "worker/channel/event_sink.h"
#include "worker/trainer/checkpoints/trial_checkpoints.h"
#include "worker/trainer/data/training_options.h"
#include "worker/trainer/data/trial_data.h"
#include "worker/trainer/memory/device_memory.h"
#include "worker/trainer/memory/stage_log.h"
#include "worker/trainer/optimizers/optimizer.h"
#include "worker/trainer/tasks/task.h"

namespace hpo::trainer {

// All of it outlives the loop.
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
  TrialCheckpoints* checkpoints = nullptr;  // null: nothing is resumed or saved
};

}  // namespace hpo::trainer
