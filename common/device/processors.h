// How many threads a trainer on this machine computes with.
#pragma once

#include "absl/status/statusor.h"

namespace hpo {

// Processors that this process may run on (its affinity); at least 1.
int AvailableProcessors();

// HPO_NUM_THREADS, or where that is not set AvailableProcessors(). Worker and trainer share the
// variable, so the worker can say for the trainer.
//   InvalidArgument  the variable is not a positive number
absl::StatusOr<int> TrainerThreads();

}  // namespace hpo
