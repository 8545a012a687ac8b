// Trials whose batches vary in length, on a card, and the order in which one of them really runs.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/trace/trial_passes.h"
#include "tests/memory/random_input.h"

namespace hpo::memory {

// Where tensors of a batch count, not weights alone; with a histogram of rows for `num_steps` steps
// or one more, and of rows for an evaluation. The same seed gives the same trial.
struct VaryingTrial {
  RandomTrial trial;
  std::vector<int64_t> training_rows;  // their tokens
  std::vector<int64_t> evaluation_rows;
};
VaryingTrial DrawVaryingTrial(uint64_t seed, int64_t num_steps);

// Probe, one epoch and the evaluation, with rows shuffled by `seed`.
TrialPasses ShuffledPasses(const VaryingTrial& trial, uint64_t seed);

}  // namespace hpo::memory
