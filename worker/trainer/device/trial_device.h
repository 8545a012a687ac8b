// The device a trainer process trains on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_facts.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {

struct TrialDevice {
  torch::Device device;
  std::unique_ptr<DeviceMemory> memory;
  // As memory's model sees it from inside the process: limits are for tensors, so that the base is
  // none of them, and the workspaces are the baseline's.
  DeviceProfile profile;
  // Live bytes of the idle process; after every trial they are this again.
  Bytes baseline;
  // What its allocator holds then, on a card.
  Bytes reserved_baseline;
  // Losses are read when somebody asks for them, and not at every step. So on a card, where reading
  // waits for all that is queued.
  bool reads_late = false;
};

// A small forward and backward, so that what libraries keep for good (cuBLAS workspaces, thread
// pools) is there. Throws what torch throws.
void WarmUp(torch::Device device);

// After a trial, whose tensors are gone: no limit, and its segments go back to the device.
// Workspaces that were replaced among them are made once more, so that the next trial finds the
// layout that its memory was predicted with. Throws what torch throws.
void GiveBack(TrialDevice& device);

// Opens "cpu" or "cuda:N" and warms it up before the baseline is taken.
//   InvalidArgument, FailedPrecondition  see OpenDeviceMemory; or the first computation failed
//   ResourceExhausted  the card has no room for torch itself: others hold its memory
//   Unavailable        the card is lost to this process: a sticky CUDA error, or a library that
//                      does not start. A new process may be able to use the card, this one is
//                      not.
absl::StatusOr<TrialDevice> OpenTrialDevice(const std::string& name);

// The outcome of a job whose device could not be opened, for this reason. Nothing of the trial was
// on the card yet: where memory ran out, others hold it (kind B), and the trial is queued again.
// Also writes the [OOM] block to the log. The process is not clean.
OutcomeMessage OutcomeWithoutDevice(const TrainerJob& job, const absl::Status& reason);

}  // namespace hpo::trainer
