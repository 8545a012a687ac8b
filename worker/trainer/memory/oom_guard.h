// Runs a piece of training that may run out of memory, and cleans up after it when it did.
// One of the trainer's two catch sites; RunTrial is the other.
#pragma once

#include <optional>

#include "absl/functional/function_ref.h"
#include "worker/trainer/memory/device_memory.h"
#include "worker/trainer/memory/memory_fault.h"

namespace hpo::trainer {

// What TryBatch met. Without `fault` the batch ran to its end.
struct BatchAttempt {
  std::optional<MemoryFault> fault;
  // The reading at the fault; `live` is that of the refused allocation where there was one, because
  // the exception has freed temporaries on its way here.
  MemoryUse use;
  // After cleaning up, live bytes were the baseline's again. false: something leaked or the device
  // is lost; the process must not be used for another attempt.
  bool clean = true;
};

// Runs `batch`. When memory runs out in it, then, outside the catch block (so that no exception
// keeps anything alive): `drop`, which lets go of whatever `batch` made that outlives it
// (gradients); caches back to the device; and the check that live bytes equal `baseline`. `batch`
// must be repeatable: no effect on parameters. Other exceptions pass through.
BatchAttempt TryBatch(DeviceMemory& memory, Bytes baseline, absl::FunctionRef<void()> batch,
                      absl::FunctionRef<void()> drop);

}  // namespace hpo::trainer
