// The batches of a trial before it runs: what TrainLoop will do, as memory's model wants it told.
#pragma once

#include <cstdint>

#include "common/memory/trial_passes.h"
#include "common/trainer_protocol.h"
#include "worker/trainer/tasks/trial_data.h"

namespace hpo {

// Every batch of `job` under `plan`, in order: the probe, then the steps of each epoch with its
// evaluations. `plan` is not changed on the way.
TrialPasses PassesOf(const TrainerJob& job, const TrainingOptions& options, const TextData& data,
                     int64_t max_positions, const MemoryPlan& plan);

}  // namespace hpo
