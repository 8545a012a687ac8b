// A configuration whose required memory is measured by a dry run before it is given to a GPU: the
// messages Preflight and PreflightReport of proto/hpo/v1/worker.proto without protobuf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"

namespace hpo {

// What a worker is to dry-run.
struct Preflight {
  std::string id;  // names it in the report; the server's
  // What the trial would be, with a lease that no call takes.
  Assignment assignment;
  // Other GPUs of the study's workers, which the same dry run may answer for by replay.
  std::vector<DeviceProfile> others;
};

enum class PreflightState {
  kMeasured,   // required memory is known
  kUncertain,  // it depends on values that a dry run does not know: a bound, or what was seen
  kFailed,     // the program cannot be dry-run, or did not come to a step in time
};

// Threads that the GPU holds at once; 0: not known.
inline int64_t ResidentThreads(const DeviceProfile& gpu) {
  return gpu.multiprocessors * gpu.threads_per_multiprocessor;
}

// What a dry run says of one GPU.
struct PreflightNeed {
  std::string capability;  // compute capability, "8.0"
  int64_t threads = 0;     // ResidentThreads
  PreflightState state = PreflightState::kFailed;
  // The least memory of the GPU with which the program runs: torch's allocator, after it has freed
  // its cache where it must, the CUDA context, workspaces and other libraries. 0 with kFailed.
  Bytes required;
  Bytes margin;  // of what lies beyond torch's allocator: covers 95 % of published figures
  bool operator==(const PreflightNeed&) const = default;
};

struct PreflightReport {
  std::string id;                    // Preflight's
  std::vector<PreflightNeed> needs;  // the worker's own GPU first, then those others it answers for
  absl::Duration took;
  std::string message;  // with kFailed and kUncertain: why, one line
};

}  // namespace hpo
