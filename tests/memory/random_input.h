// Random trials on a card, of every family, task and technique that our trainer has.
#pragma once

#include <cstdint>

#include "memory/need/memory_estimate.h"

namespace hpo::memory {

struct RandomTrial {
  EstimateInput input;  // valid, and CanBeReplayed
  MemoryPlan plan;
};

// The same seed gives the same trial.
RandomTrial DrawTrial(uint64_t seed);

}  // namespace hpo::memory
