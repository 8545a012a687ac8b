// What an attempt came to, from what is known of how its trainer ended. Pure.
//
// Order of belief: the outcome line; then, for a trainer that never said hello, the protocol; then
// the signal or exit status. Exit statuses: 0 done, 10 pruned, 20 out of device memory, 21 out of
// host memory, 22 diverged, 23 data, 24 model, 25 stopped by its user, 64 and 78 configuration,
// 99 internal (docs/TRAINER_PROTOCOL.md).
#pragma once

#include <optional>
#include <string>

#include "common/bytes.h"
#include "common/trainer_protocol.h"
#include "common/trial.h"
#include "worker/agent/trainer_process.h"

namespace hpo {

// The evidence.
struct TrainerEnd {
  bool said_hello = true;
  std::optional<OutcomeMessage> outcome;
  ProcessExit exit;  // of no interest when `outcome` is set
  // By how much the kernel's count of out-of-memory kills grew during the attempt.
  int64_t oom_kills = 0;
  // The first thing the trainer did against the protocol; empty: nothing.
  std::string protocol_error;
  // The pruner that had asked for a stop; empty: none had.
  std::string pruner;
  // What was assigned and how far it came.
  MemoryPlan plan;
  Bytes limit;
  std::optional<Measurement> last_measurement;
  std::string stage;     // of the last memory line
  std::string log_tail;  // last lines of the trainer's own output
};

TrialOutcome ClassifyEnd(const TrainerEnd& end);

// "exited with status 3", "was killed by SIGSEGV".
std::string DescribeExit(const ProcessExit& exit);

// "SIGSEGV"; "signal 64" for one without a name.
std::string SignalName(int signal);

}  // namespace hpo
