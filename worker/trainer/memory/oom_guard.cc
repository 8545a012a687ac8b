#include "worker/trainer/memory/oom_guard.h"

#include <algorithm>
#include <exception>

namespace hpo::trainer {
namespace {

bool ReturnsToBaseline(DeviceMemory& memory, Bytes baseline) {
  try {
    memory.ReleaseCache();
    return memory.Read().live == baseline;
  } catch (const std::exception&) {
    return false;  // the device answers no more
  }
}

}  // namespace

BatchAttempt TryBatch(DeviceMemory& memory, Bytes baseline, absl::FunctionRef<void()> batch,
                      absl::FunctionRef<void()> drop) {
  BatchAttempt attempt;
  try {
    memory.TakeRefused();
    batch();
    return attempt;
  } catch (const std::exception& error) {
    attempt.fault = ClassifyError(error);
    if (!attempt.fault.has_value()) throw;
  }
  if (attempt.fault->type == MemoryFaultType::kDeviceLost) {
    attempt.clean = false;
    return attempt;
  }
  attempt.fault->refused = memory.TakeRefused();
  attempt.use = memory.Read();
  if (attempt.fault->refused.has_value()) {
    attempt.use.live = attempt.fault->refused->live;
    attempt.use.reserved = std::max(attempt.use.reserved, attempt.use.live);
    // The unwinding has freed much since: of one moment are these with what was free then.
    const Bytes left = std::max(Bytes{}, attempt.use.total - attempt.use.reserved);
    attempt.use.free = std::min(attempt.use.free, left);
  }
  drop();
  attempt.clean = ReturnsToBaseline(memory, baseline);
  return attempt;
}

}  // namespace hpo::trainer
