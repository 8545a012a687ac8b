// What a fleet is: workers that an engine (Slurm, Ray, Kubernetes, SkyPilot) starts as one thing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace hpo::cli {

// How workers reach the server. One of the three is set.
struct FleetServer {
  std::string address;    // of a server without TLS: HPO_SERVER
  std::string join;       // the join string, or the whole line with it: a secret
  std::string join_file;  // a file with it that the workers can read, too

  bool HasSecret() const { return address.empty(); }
  bool operator==(const FleetServer&) const = default;
};

// Where the pods of a fleet have the volume that they share.
inline constexpr char kSharedFolder[] = "/shared";

struct FleetPlan {
  std::string name;
  std::string study;  // empty: the workers serve every study
  int workers = 1;
  int gpus_per_worker = 1;             // 0: the workers run on CPUs
  std::string gpu_type;                // by the engine's name for it; empty: any
  int cpus_per_worker = 0;             // 0: the engine's default
  Bytes memory_per_worker{};           // of the host; 0: the engine's default
  std::optional<absl::Duration> time;  // after which the engine ends a worker; nullopt: its default
  int max_running = 0;                 // workers at a time; 0: all
  std::vector<std::string> setup;      // lines of /bin/bash before the worker
  std::string checkpoints;             // folder that all workers share; empty: the worker's default
  std::vector<std::string> worker_options;
  std::vector<std::string> engine_options;  // such as --account=vision of sbatch
  std::string image;                        // of Kubernetes' containers
  std::string queue;                        // of Kueue; empty: none
  std::string claim;  // a persistent volume claim, which workers see at kSharedFolder; empty: none
  bool is_spot = false;  // SkyPilot: machines that may be preempted
  FleetServer server;
  std::string folder;  // on the submitting machine: the kept script and the file of the secret
};

// The name of the fleet of a study: in small letters, with one '-' for all that is no letter or
// digit, as every engine takes it. Empty where nothing is left.
std::string FleetNameOf(absl::string_view study);

// What the engine calls the fleet: "hpo-NAME".
std::string FleetLabel(absl::string_view name);

// The name of the fleet with this label; nullopt: it is none of ours.
std::optional<std::string> NameOfLabel(absl::string_view label);

// Whether it is such a name.
//   InvalidArgument  with what was expected
absl::Status CheckFleetName(absl::string_view name);

// Whether the text is letters and digits with `signs` between them. An empty text is none.
bool IsWord(absl::string_view text, absl::string_view signs);

//   InvalidArgument  a value is wrong, or has a control character or a line separator, or two of
//                    them contradict each other
absl::Status CheckPlan(const FleetPlan& plan);

// The options that name a worker's device, if its own do not. Without GPUs, a trial may use seven
// eighths of the worker's memory, if its options do not say how much.
std::vector<std::string> DeviceWords(const FleetPlan& plan);

// `program` with the options of a worker of this fleet.
std::vector<std::string> WorkerWords(const FleetPlan& plan, const std::string& program);

// The words as lines of a shell script, each indented by two blanks: an option and its value share
// a line.
std::string WordLines(const std::vector<std::string>& words);

// The command line that makes this plan for an engine: "hpo fleet slurm --workers 32 ...". It never
// holds a secret.
std::string PlanCommand(absl::string_view engine, const FleetPlan& plan);

// "8h" as hours, minutes and seconds: "08:00:00".
std::string ClockText(absl::Duration time);

// Whether the address means the machine that uses it: other machines reach no server there.
bool IsLoopback(absl::string_view address);

}  // namespace hpo::cli
