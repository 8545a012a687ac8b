// The outcomes that a memory fault ends in.
#pragma once

#include <string>

#include "common/protocol/trainer_protocol.h"
#include "common/study/trial.h"
#include "worker/trainer/memory/memory_fault.h"

namespace hpo::trainer {

// Where a trial was when it ran out of memory.
struct OomContext {
  const TrainerJob& job;
  std::string phase;
  int64_t step = 0;
  MemoryPlan plan;
};

// The outcome; also writes the [OOM] block to the log. `use`: the reading at the fault.
OutOfMemory OutOfMemoryOutcome(const MemoryFault& fault, const MemoryUse& use,
                               const OomContext& context, const std::string& device_kind);

Failed DeviceLostOutcome(const MemoryFault& fault, const std::string& phase, int64_t step);

}  // namespace hpo::trainer
