// What a worker and the server tell each other about sessions, leases and attempts, as values: the
// messages of proto/hpo/v1/worker.proto without protobuf. Used by server/api and by the agent's
// CoordinatorClient. The meaning of each call is documented in proto/hpo/v1/worker.proto.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/protocol/trial_task.h"
#include "common/study/metric_constraint.h"
#include "common/study/trial.h"

namespace hpo {

struct Registration {
  std::string session;
  absl::Duration heartbeat_interval;
  int64_t studies_version = 0;
  std::string database;  // which one is behind the server
};

// Names one attempt and proves that the caller holds it.
struct LeaseRef {
  TrialId trial;
  AttemptNumber attempt;
  std::string token;
  std::string database = {};  // whose trial it is; empty: not known
  bool operator==(const LeaseRef&) const = default;
};

struct Assignment {
  LeaseRef lease;
  TrialTask task;
  Bytes required;  // the prediction with its margin: what must be free at the start; 0: not known
  bool demonstration = false;
  std::vector<MetricConstraint> constraints;
  // The longest that one of its study's last trials took from its start to its end; 0: not known.
  absl::Duration longest_time;
};

struct FinishedStudy {
  std::string study;
  std::string why;
  bool failed = false;  // failures ended it
  bool operator==(const FinishedStudy&) const = default;
};

struct AcquireResult {
  std::optional<Assignment> assignment;
  int64_t studies_version = 0;
  bool all_studies_finished = false;  // all that the worker serves
  bool draining = false;
  std::string waiting_for;
  std::vector<FinishedStudy> finished;  // those that the worker serves, once all are
  bool blocked = false;  // no trial will come unless somebody intervenes; see the message
  bool drained = false;  // the worker gets no trials any more, and is to end
};

struct LeaseBeat {
  LeaseRef lease;
  int64_t step = 0;
  std::string stage;
  Bytes allocated;
  Bytes reserved;
  std::string log_tail = {};  // Attempt::log_tail; empty: as the beat before said
};

// kPreempted: save, and give the trial back; it is queued again. kTimeLimit: the trial has used its
// time; end it with what it has, and keep its best weights.
enum class Directive { kContinue, kStopPruned, kLeaseLost, kCancelled, kPreempted, kTimeLimit };

// The pruner of a trial that has used its time.
constexpr char kTimeLimitPruner[] = "time limit";

// Whether a heartbeat is the last one of its process. kDied: another process says so for it.
enum class Goodbye { kNone, kLeaving, kDied };

struct HeartbeatResult {
  std::vector<Directive> directives;
  absl::Duration next;
  bool register_again = false;
};

// News of a running attempt.
struct AttemptReport {
  LeaseRef lease;
  std::vector<Measurement> measurements;
  std::optional<MemoryPlan> new_plan;  // set when the trainer re-planned since the last report
  int64_t num_ooms = 0;
  std::vector<MemoryRecord> memory_records;
  Attributes attributes = {};  // those that are new or have changed
  // Part of a result that is too large for one message: the token suffices, the lease may be gone.
  bool of_result = false;
};

// The answer to a report.
struct ReportResult {
  bool should_stop = false;
  std::string pruner;
  std::string why;
  Directive directive = Directive::kContinue;  // as a heartbeat's
};

struct FinishRequest {
  LeaseRef lease;
  TrialOutcome outcome;
  MemoryReport memory;
  MemoryPlan final_plan;
  // Not yet acknowledged.
  std::vector<Measurement> measurements;
  std::vector<MemoryRecord> memory_records;
  Attributes attributes = {};
  std::string log_tail = {};  // Attempt::log_tail; empty: as the last beat said
  bool operator==(const FinishRequest&) const = default;
};

// A trial given back without an outcome.
struct TrialRelease {
  LeaseRef lease;
  ReleaseReason reason = ReleaseReason::kPreempted;
  Bytes needed = {};  // with kRejected, what the trial would need
  std::string note = {};
  std::string log_tail = {};  // as FinishRequest's
};

struct FinishResult {
  TrialState state = TrialState::kQueued;  // terminal, or kQueued where the trial runs again
  bool stored = false;                     // false: a result was there already; this is a duplicate
};

}  // namespace hpo
