// The command line of hpo-worker. Flags beat environment beat defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/tls/server_route.h"
#include "worker/agent/attempt/checkpoint_folders.h"
#include "worker/agent/preflight/dry_run_ability.h"

namespace hpo::agent {

struct WorkerOptions {
  std::string gpu = "visible";  // SelectGpus
  // That one worker process holds. nullopt: as many as the studies that it serves want, where it
  // runs a program of the user's own, else 1.
  std::optional<int> gpus_per_trial;
  bool cpu = false;
  std::optional<Bytes> memory_limit;
  int num_workers = 1;  // on the CPU
  std::string server;
  std::optional<tls::JoinSource> join;  // beats server; nullopt: plaintext
  std::vector<std::string> studies;     // empty: AgentOptions::studies
  std::string models;                   // empty: none
  std::string data;
  std::string train;
  std::string validation;
  std::string trainer;          // a command; empty: the hpo-trainer beside this program
  bool allow_commands = false;  // the study's own command takes its place
  // Whether trials run a program of the user's own.
  bool HasProgram() const { return !trainer.empty() || allow_commands; }
  std::vector<std::string> metric_patterns;
  std::string metrics_file;
  // Of a command that does not speak the trainer protocol (worker/command): it has places for a
  // trial's values or reads them from its environment, or one of the two says where its metrics
  // are. Reads the files that the command names.
  bool IsPlainProgram() const;
  std::string allocator;  // of a card's memory, as FormatAllocatorSettings; empty: torch's defaults
  std::optional<int> threads;  // of the trainer on the CPU; nullopt: HPO_NUM_THREADS, or all
  std::string state_dir;
  std::string name;  // empty: EngineWorkerName, else DefaultWorkerName
  // The name is that of all workers which this engine's job may start: with several GPUs to be
  // visible, each gets the place of its GPU behind it.
  bool name_of_fleet = false;
  std::optional<int64_t> max_trials;
  bool stay = false;
  std::optional<absl::Duration> max_idle;  // nullopt: however long
  int64_t num_kept_models = 1;
  bool keep_all_models = false;
  CheckpointOptions checkpoints;
  PreflightWish preflight = PreflightWish::kIfAsked;
  int preflight_threads = 1;
  absl::Duration preflight_timeout = absl::Seconds(120);  // of one run of the program
  absl::Duration time_limit = absl::InfiniteDuration();
  std::optional<absl::Duration> stop_grace;  // nullopt: as the trainer says
  absl::Duration connect_timeout = absl::Minutes(5);
  std::string log_level = "info";
  bool log_json = false;
};

// Reads the command line. An int: the program is over with that exit status, and has said why
// (help and version on `out`, 0; a wrong command line in one line on `err`, 78).
std::variant<WorkerOptions, int> ReadWorkerOptions(int argc, const char* const* argv,
                                                   std::ostream& out, std::ostream& err);

// "0.1.0"
const char* WorkerVersion();

}  // namespace hpo::agent
