// The messages between a supervisor and a trainer: one JSON object per line, both ways, over a
// socketpair that the trainer inherits as file descriptor 3 (HPO_TRAINER_FD names another).
// docs/TRAINER_PROTOCOL.md is the specification; this header is its C++ form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/protocol/trial_task.h"
#include "common/study/trial.h"

namespace hpo {

constexpr int64_t kTrainerProtocolVersion = 1;
constexpr int kTrainerProtocolFd = 3;

// Exit statuses of a trainer, for ends without an outcome line (docs/TRAINER_PROTOCOL.md, "Exit
// status").
namespace trainer_exit {
enum Status {
  kDone = 0,
  kPruned = 10,
  kOutOfDeviceMemory = 20,
  kOutOfHostMemory = 21,
  kDiverged = 22,
  kBadData = 23,
  kBadModel = 24,  // model, torch or device
  kCancelled = 25,
  kUsage = 64,          // EX_USAGE
  kConfiguration = 78,  // EX_CONFIG
  kInternal = 99,
  kCannotStart = 127,  // as a shell says it: the program is not there or cannot be executed
};
}  // namespace trainer_exit

// ---- Down: supervisor to trainer -------------------------------------------------------------

// Where and how often a trainer saves what a later attempt of its trial continues from.
struct CheckpointSpec {
  std::string folder;                           // the trial's, shared by its attempts; empty: none
  int64_t every_steps = 0;                      // optimizer steps; 0: time alone counts
  absl::Duration every = absl::ZeroDuration();  // 0: steps alone count
  Bytes quota;                                  // of all checkpoints of the study; 0: none
  bool operator==(const CheckpointSpec&) const = default;
};

// One attempt to run.
struct TrainerJob {
  std::string study;
  TrialNumber trial;
  AttemptNumber attempt;
  TrialTask task;
  std::string model_name;
  std::string model_path;      // folder; empty: the trainer needs none
  std::string device = "cpu";  // "cpu", "cuda:0"
  std::string output_dir;      // best weights, logs; exists
  CheckpointSpec checkpoints;
  bool operator==(const TrainerJob&) const = default;
};

// End the attempt: `reason` is "pruned", "time limit", "drain", "preempted", "cancelled" or "lease
// lost".
struct StopRequest {
  std::string reason;
  bool checkpoint = false;
  bool operator==(const StopRequest&) const = default;
};

// No further jobs; exit with status 0.
struct ShutdownRequest {
  bool operator==(const ShutdownRequest&) const = default;
};

using DownMessage = std::variant<TrainerJob, StopRequest, ShutdownRequest>;

// ---- Up: trainer to supervisor ---------------------------------------------------------------

// First line of a trainer process.
struct Hello {
  int64_t version = kTrainerProtocolVersion;
  std::string program;                    // "hpo-trainer 0.1.0"
  std::vector<std::string> capabilities;  // "plan", "stop", "memory", "reuse"
  std::string torch_build;                // "2.11.0+cu130"; empty without torch
  bool Has(absl::string_view capability) const;
  bool operator==(const Hello&) const = default;
};

// Validation metrics after `step` optimizer steps.
struct MeasurementMessage {
  Measurement measurement;
  bool operator==(const MeasurementMessage&) const = default;
};

// Memory at a stage of the attempt.
using MemoryMessage = MemoryRecord;

// What the trainer notes of the trial; a key that was there gets the new value.
struct AttributesMessage {
  Attributes attributes;
  bool operator==(const AttributesMessage&) const = default;
};

// A file worth keeping: `kind` is "best" or "resume".
struct CheckpointMessage {
  std::string kind;
  std::string path;
  int64_t step = 0;
  bool operator==(const CheckpointMessage&) const = default;
};

// Progress between measurements, at most a few per second; shown to people, never stored.
struct ProgressMessage {
  int64_t step = 0;
  int64_t total_steps = 0;
  double loss = 0.0;
  // How long the trainer may take to end where a stop comes now, saving included; 0: not said.
  absl::Duration stop_time;
  bool operator==(const ProgressMessage&) const = default;
};

struct LogMessage {
  std::string level;  // "info", "warning", "error"
  std::string text;
  bool operator==(const LogMessage&) const = default;
};

// Last line of an attempt. A clean trainer may then be sent the next job.
struct OutcomeMessage {
  // nullopt: stopped on request without a result (drain, lease lost).
  std::optional<TrialOutcome> outcome;
  MemoryReport memory;
  MemoryPlan final_plan;
  // false: this process must not be reused (baseline drifted, sticky error).
  bool clean = true;
  bool operator==(const OutcomeMessage&) const = default;
};

using UpMessage = std::variant<Hello, MeasurementMessage, MemoryMessage, CheckpointMessage,
                               ProgressMessage, LogMessage, AttributesMessage, OutcomeMessage>;

// One line without the newline. An infinite metric is written as "Infinity" or "-Infinity", any
// other number that is not finite as null (and a null metric or loss is read back as NaN); bytes
// that are not UTF-8 as U+FFFD.
std::string EncodeDown(const DownMessage& message);
std::string EncodeUp(const UpMessage& message);

// Fields that are not known are ignored; those that may be left out are listed in the
// specification.
//   InvalidArgument  not JSON, no or unknown "type", a field missing or of another type; names it
absl::StatusOr<DownMessage> DecodeDown(absl::string_view line);
absl::StatusOr<UpMessage> DecodeUp(absl::string_view line);

}  // namespace hpo
