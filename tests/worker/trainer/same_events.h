// What the drift guard compares: the memory that the trainer allocates and frees on a CPU, event by
// event, against the trace that memory's model generates for it.
#pragma once

#include "common/base/bytes.h"
#include "common/protocol/trainer_protocol.h"
#include "tests/worker/trainer/synthetic_trial.h"

namespace hpo::trainer {

// Runs the job, which has to complete, and fails the test with the first event in which the two
// differ. `scales_gradients`: whether clipping is to.
void ExpectSameEvents(TrainerJob job, bool scales_gradients = false);
void ExpectSameEvents(const SyntheticTrial& trial);

// Runs the job, which has to complete, and fails the test unless its peak is within the replay of
// its trace, and that within EstimateMemory. Result: the bytes that it used.
Bytes ExpectPeakWithinEstimates(const TrainerJob& job);

// Sizes that tell every tensor from every other.
SyntheticTrial Small();

}  // namespace hpo::trainer
