// What a worker tells the server when it registers. The server sees neither data nor models, so all
// that memory depends on is here.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/models/model_spec.h"
#include "common/models/workload.h"
#include "common/protocol/process_identity.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

struct ModelFacts {
  std::string name;  // as studies name it: "bert-base-uncased", "org/name"
  ModelShape shape;
  std::string digest;            // SHA-256 of config.json and the size of the weights
  std::string tokenizer_digest;  // SHA-256 of the vocabulary and casing
  bool has_weights = false;      // model.safetensors is there
  bool operator==(const ModelFacts&) const = default;
};

struct DeviceProfile {
  std::string kind;  // "cpu" or "cuda"
  std::string name;  // "NVIDIA H200", or the processor's name
  std::string uuid;  // the card's, or the host name
  std::string driver;
  Bytes total;
  // Context and libraries: used by an idle trainer, not available to a trial.
  Bytes base;
  // Workspaces that a trial on this device allocates (cuBLAS and the like).
  Bytes workspace;
  // Where base and workspace are from: "measured" (hpo-trainer --profile-device) or "default".
  std::string source = "default";
  // What they were measured with; empty and 0 with defaults.
  std::string torch_build;
  std::string capability;  // compute capability, "9.0"; on a CPU the instruction set, "AVX2"
  // Kernels that attention takes: memory/trace/attention_kernels.h.
  std::string attention;
  std::string allocator;  // options, "expandable_segments:False"
  int64_t threads = 0;    // of a trainer on a CPU; 0: not known
  // Of a card: its multiprocessors, and the threads that one of them runs; 0: not known.
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;
  auto operator<=>(const DeviceProfile&) const = default;
};

// Whether a worker dry-runs configurations before it runs them.
enum class PreflightAbility {
  kNone,     // it cannot, or must not
  kIfAsked,  // for studies with memory.preflight
  kAlways,   // for every study
};

struct WorkerFacts {
  std::string worker;        // human name, "host:gpu0"
  std::string instance_key;  // random per process
  std::string version;       // of hpo-worker
  std::string torch_build;   // empty: a trainer that is not ours
  std::string trainer;       // "hpo-trainer", or the command of --trainer
  bool plans = true;         // the trainer has the capability `plan`
  DeviceProfile device;
  Bytes capacity;  // usable bytes now
  std::vector<ModelFacts> models;
  std::vector<DataSetFacts> data_sets;
  // The only studies that it serves, none where it has not been told which; nullopt: every study.
  std::optional<std::vector<std::string>> serves;
  ProcessIdentity process;  // that the session is of
  // Models and data files that are there and cannot be used here: why, by name.
  std::map<std::string, std::string> left_out;
  // Some of it is read again soon, as this machine lacked something at the moment.
  bool reads_again = false;
  PreflightAbility preflight = PreflightAbility::kNone;
  // That each of its trials takes; `device` and `capacity` are then of the smallest. 1 on a CPU.
  int64_t gpus = 1;
  bool operator==(const WorkerFacts&) const = default;
};

// One line of hpo-trainer --profile-device, and part of WorkerFacts.
//   InvalidArgument  a member missing or of another type; names it
nlohmann::json DeviceProfileToJson(const DeviceProfile& device);
absl::StatusOr<DeviceProfile> DeviceProfileFromJson(const nlohmann::json& json);

}  // namespace hpo
