// The batches of a trial before it runs: what TrainLoop will do, as memory's model wants it told.
#pragma once

#include <cstdint>

#include "common/protocol/trainer_protocol.h"
#include "memory/trace/trial_passes.h"
#include "worker/trainer/data/trial_data.h"

namespace hpo::trainer {

// What a replay may want to know of (memory/need/ordered_replay.h).
constexpr int64_t kMostPassedSteps = 1000;

// Every batch of `job` under `plan`, in order: the probe, then the steps of each epoch with its
// evaluations; of more than kMostPassedSteps steps the first, and an evaluation after them. `plan`
// is not changed on the way.
memory::TrialPasses PassesOf(const TrainerJob& job, const TrainingOptions& options,
                             const TextData& data, int64_t max_positions, const MemoryPlan& plan);

}  // namespace hpo::trainer
