// Trials, attempts and how they end. Plain values shared by every layer.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/space/params.h"
#include "common/study/attributes.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// kQueued and kRunning are open; the others are terminal, and a trial has one terminal state ever.
enum class TrialState { kQueued, kRunning, kCompleted, kPruned, kFailed, kCancelled };

enum class PruneReason { kOutOfMemory, kPredictedOutOfMemory, kHostOutOfMemory, kPruner };

enum class Precision { kFloat32, kBfloat16, kFloat16 };

// The parameters that say how much one step takes.
inline constexpr char kBatchSizeParameter[] = "train.batch_size";
inline constexpr char kGradAccumParameter[] = "train.grad_accum";
inline constexpr char kMaxLengthParameter[] = "tok.max_length";

// How an attempt executes its configuration. The effective batch E is what learns; the plan only
// splits it: ceil(E / micro_batch) parts, the last one shorter.
struct MemoryPlan {
  int64_t effective_batch = 1;
  int64_t micro_batch = 1;
  bool checkpointing = false;
  Precision precision = Precision::kFloat32;
  auto operator<=>(const MemoryPlan&) const = default;

  int64_t NumParts() const { return (effective_batch + micro_batch - 1) / micro_batch; }
};

using Metrics = std::map<std::string, double>;

struct Completed {
  Metrics metrics;
  // Folder of the best weights on the worker's disk; empty when the trainer keeps none.
  std::string model_path;
  bool operator==(const Completed&) const = default;
};

// Ended early because the server said so.
struct StoppedByPruner {
  std::string pruner;
  int64_t step = 0;
  Metrics metrics;
  bool operator==(const StoppedByPruner&) const = default;
};

// Why memory ran out.
enum class OomKind {
  kConfiguration,  // A: too big for this card
  kDirtyDevice,    // B: others hold the memory
  kFragmentation,  // C
  kLatePeak,       // D: after the first step
  kHost,           // E: host memory, cgroup kill
};

// Stored as PRUNED: OUT_OF_MEMORY when met, PREDICTED_OUT_OF_MEMORY when `predicted`,
// HOST_OUT_OF_MEMORY for kHost.
struct OutOfMemory {
  OomKind kind = OomKind::kConfiguration;
  bool predicted = false;
  Bytes requested;    // the allocation that failed; 0 when unknown
  Bytes peak;         // live bytes at the peak; 0 when unknown
  Bytes limit;        // what was allowed
  Bytes needed;       // predicted need; 0 when there was no estimate
  std::string phase;  // "forward", "backward", "optimizer step", "evaluation", ...
  int64_t step = 0;
  MemoryPlan plan;        // the smallest that was tried
  std::string message;    // of the error, as torch words it
  std::string traceback;  // of the same error
  bool operator==(const OutOfMemory&) const = default;
};

enum class FailureClass {
  kBadData,   // data or labels
  kBadModel,  // config, weights, vocabulary
  kBadConfiguration,
  kDiverged,        // loss is not finite
  kTrainerCrashed,  // signal or unexpected exit; transient
  kTrainerKilled,   // SIGKILL that no cgroup counter explains; transient
  kDeviceLost,      // sticky CUDA error; transient
  kProtocol,        // the trainer did not speak the protocol
  kWorkerLost,      // lease expired too often
  kInternal,
};

struct Failed {
  FailureClass failure_class = FailureClass::kInternal;
  std::string message;
  bool operator==(const Failed&) const = default;
};

struct Cancelled {
  std::string reason;
  bool operator==(const Cancelled&) const = default;
};

using TrialOutcome = std::variant<Completed, StoppedByPruner, OutOfMemory, Failed, Cancelled>;

TrialState StateOf(const TrialOutcome& outcome);
std::optional<PruneReason> PruneReasonOf(const TrialOutcome& outcome);

// Why a worker gives a trial back without an outcome.
enum class ReleaseReason {
  kPreempted,  // the worker drains
  kRejected,   // does not fit now: `needed` bytes
  kUnhealthy,  // the card or the worker is unwell
};

// What an attempt really used; every field 0 when unknown.
struct MemoryReport {
  Bytes baseline;  // live bytes before the trial
  Bytes live_peak;
  Bytes reserved_peak;
  Bytes device_peak;  // NVML, other processes left out
  Bytes limit;
  std::string peak_phase;
  int64_t num_ooms = 0;  // met and recovered, or met at the end
  int64_t num_replans = 0;
  // Live bytes that did not come back, and what ran when they grew ("training step"); 0: none.
  Bytes growth;
  std::string growth_stage;
  bool operator==(const MemoryReport&) const = default;
};

// Memory at a stage of an attempt, as its trainer told it; sizes are 0 where unknown. The stages of
// the reference trainer: "Trial Start", "Training Start", "Probe" (the batch that needs the most,
// run and thrown away), "Training End", "Trial Success", "OOM Error", "Growth" (live bytes do not
// return to what they were), "replan" (then `plan` is the new one).
struct MemoryRecord {
  static constexpr size_t kLongestStage = 200;  // bytes, also of growth_stage

  std::string stage;
  Bytes allocated;
  Bytes reserved;
  Bytes free;
  Bytes total;
  Bytes peak;
  // The peak that was predicted for the plan in force.
  Bytes predicted;
  // "Probe": the most that the allocator was predicted to reserve over the batches to come.
  Bytes predicted_reserved;
  // "OOM Error": the peak would have been this or more (a censored observation).
  Bytes needed;
  std::optional<MemoryPlan> plan;
  int64_t step = 0;
  Bytes resident;            // host memory of the trainer's process
  Bytes growth;              // "Growth": what did not come back, and what ran when it grew
  std::string growth_stage;  // ("training step", "evaluation", ...; "trial": nobody knows where)
  int64_t sequence = 0;      // among its attempt's, from 0; numbered by the worker
  bool operator==(const MemoryRecord&) const = default;
};

struct Measurement {
  int64_t step = 0;  // optimizer steps done
  double epoch = 0.0;
  Metrics metrics;
  bool operator==(const Measurement&) const = default;
};

enum class AttemptState { kLeased, kSuspect, kFinished, kReleased, kLost, kSuperseded };

struct Attempt {
  AttemptNumber number;
  AttemptState state = AttemptState::kLeased;
  std::string worker;  // human name, host:gpu
  Bytes capacity;
  Bytes predicted;  // estimate for `plan`; 0: none
  MemoryPlan plan;  // as assigned; `final_plan` is what the trainer ended with
  std::optional<MemoryPlan> final_plan;
  std::optional<MemoryReport> memory;
  std::string end_note;  // why it ended when it has no outcome: released, lost ...
  // By sequence; empty unless the loading function says otherwise.
  std::vector<MemoryRecord> memory_records;
  // The last lines that its program wrote (common/files/log_tail.h); empty as `memory_records` is.
  std::string log_tail;
  absl::Time started = absl::InfinitePast();
  absl::Time ended = absl::InfinitePast();
};

struct Trial {
  TrialId id;
  TrialState state = TrialState::kQueued;
  ParamMap params;
  // Shown apart and counted apart: the quickstart's out-of-memory demonstration.
  bool demonstration = false;
  // Where a trial comes from that another program ran, "optuna:NAME#12"; empty: from this study.
  std::string origin;
  // false: an imported trial that does not count against the study's budget.
  bool budgeted = true;
  // false: no admission by estimate (demonstration, or `hpo enqueue --no-admission`).
  bool admission = true;
  // Micro-batch forced on the first plan, or 0.
  int64_t forced_micro_batch = 0;
  // Only workers with more than this may take it (0: any).
  Bytes min_capacity;
  std::optional<TrialOutcome> outcome;
  std::vector<Attempt> attempts;
  std::optional<Measurement> last_measurement;
  // Value of the first objective, when completed.
  std::optional<double> value;
  // How far a completed trial's metrics are from what the study's constraints allow (ViolationOf);
  // 0: feasible, or not completed.
  double violation = 0.0;
  Attributes attributes;
  absl::Time created = absl::InfinitePast();
  absl::Time started = absl::InfinitePast();
  absl::Time ended = absl::InfinitePast();
};

// Names as stored and shown: "COMPLETED", "OUT_OF_MEMORY", "float32", ... Parse returns nullopt for
// an unknown name.
absl::string_view Name(TrialState state);
absl::string_view Name(PruneReason reason);
absl::string_view Name(Precision precision);
absl::string_view Name(OomKind kind);
absl::string_view Name(FailureClass failure_class);
absl::string_view Name(ReleaseReason reason);
absl::string_view Name(AttemptState state);
template <typename Enum>
std::optional<Enum> ParseName(absl::string_view name);

// Canonical JSON, for the database and the trainer protocol. A metric that is infinite is written
// as the string "Infinity" or "-Infinity", one that is no number as null; "NaN" is read as well.
// Readers ignore members they do not know.
//   InvalidArgument  a member missing, of another type or out of range; names it
nlohmann::json MetricsToJson(const Metrics& metrics);
absl::StatusOr<Metrics> MetricsFromJson(const nlohmann::json& json);
nlohmann::json OutcomeToJson(const TrialOutcome& outcome);
absl::StatusOr<TrialOutcome> OutcomeFromJson(const nlohmann::json& json);
nlohmann::json PlanToJson(const MemoryPlan& plan);
absl::StatusOr<MemoryPlan> PlanFromJson(const nlohmann::json& json);

// The configuration of an out-of-memory trial: model, batch_size, grad_accum, max_length,
// effective_batch_size.
nlohmann::json OomConfig(const ParamMap& params);

}  // namespace hpo
