// What an attempt came to, from what is known of how its trainer ended. Pure.
//
// Order of belief: the outcome line; then what it did against the protocol; then that it cannot be
// ended; then the signal or exit status.
// Exit statuses: 0 done, 10 pruned, 20 out of device memory, 21 out of host memory, 22 diverged, 23
// data, 24 model, 25 stopped by its user, 64 and 78 configuration, 99 internal, 127 cannot start
// (docs/TRAINER_PROTOCOL.md).
#pragma once

#include <optional>
#include <string>

#include "common/base/bytes.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/trial.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {

// Why the agent told the trainer to end; a later one beats an earlier one.
enum class StopCause { kNone, kPreempted, kDrain, kTimeLimit, kPruned, kCancelled, kLeaseLost };

// The reason in the protocol's stop line: "drain", "time limit", "pruned", ...
const char* StopReason(StopCause cause);

// The evidence.
struct TrainerEnd {
  StopCause stop_cause = StopCause::kNone;
  bool killed_by_agent = false;  // `exit` is then the agent's doing
  std::optional<OutcomeMessage> outcome;
  ProcessExit exit;  // of no interest when `outcome` is set
  // It did not end after SIGKILL either, and is there still; `exit` is not known then.
  std::optional<pid_t> undying;
  // By how much the kernel's count of out-of-memory kills grew during the attempt.
  int64_t oom_kills = 0;
  // The first thing the trainer did against the protocol; empty: nothing.
  std::string protocol_error;
  // The pruner that had asked for a stop; empty: none had.
  std::string pruner;
  // What was assigned and how far it came.
  MemoryPlan plan;  // the last one that the trainer told of
  Bytes limit;
  std::optional<Measurement> last_measurement;
  std::string stage;     // of the last memory line
  std::string log_tail;  // last lines of the trainer's own output
  // What a result reports besides the outcome.
  LeaseBeat beat;        // the lease, and the progress that the trainer reported
  bool plans = false;    // whether the trainer reports its plans (Hello)
  Bytes base;            // of the device, for context and libraries (JobPlaces::base)
  MemoryRecord memory;   // the last memory line
  Bytes live_peak;       // the largest of the memory lines
  Bytes host_growth;     // of the process, over several attempts; 0: none
  int64_t num_ooms = 0;  // that the trainer reported
  int64_t num_replans = 0;
};

// Whether the trainer says by its exit status that the program which it runs cannot be started, so
// that no other trial would run either (docs/TRAINER_PROTOCOL.md, "Exit status").
bool CannotStart(const TrainerEnd& end);

// The trainer's own end, whatever the agent had asked for.
TrialOutcome ClassifyEnd(const TrainerEnd& end);

// The attempt's result in view of what the agent had asked for; nullopt: none, the trial goes back
// to the server. A lost lease has none either.
std::optional<TrialOutcome> JudgeAttempt(const TrainerEnd& end);

// What the trainer says at its end counts; what it lacks is taken from its memory lines. The server
// counts in bytes of the device, a trainer in bytes of its allocator: the base lies between them.
MemoryReport MemoryUsed(const TrainerEnd& end);

// The memory record that reports host_growth to the server.
MemoryRecord GrowthRecord(const TrainerEnd& end);

// The result of an attempt that came to `outcome`, but for what no report has carried.
FinishRequest ResultOf(TrialOutcome outcome, const TrainerEnd& end);

// "exited with status 3", "was killed by SIGSEGV".
std::string DescribeExit(const ProcessExit& exit);

}  // namespace hpo::agent
