// The command line of hpo-worker. Flags beat environment beat defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/bytes.h"

namespace hpo {

struct WorkerOptions {
  std::string gpu;  // index, UUID or "all"; empty: not asked for
  bool cpu = false;
  std::optional<Bytes> memory_limit;
  std::string server;
  std::string models;  // empty: none
  std::string data;
  std::string train;
  std::string validation;
  std::string trainer;  // a command; empty: the hpo-trainer beside this program
  std::string state_dir;
  std::string name;  // empty: HOST:gpuN or HOST:cpu
  std::optional<int64_t> max_trials;
  bool stay = false;
  absl::Duration connect_timeout = absl::Minutes(5);
  std::string log_level = "info";
  bool log_json = false;
};

// What is to be printed instead of running: help or version.
struct PrintAndExit {
  std::string text;
};

//   InvalidArgument  an unknown flag, a value of the wrong form, or flags that exclude each other
absl::StatusOr<std::variant<WorkerOptions, PrintAndExit>> ParseWorkerOptions(
    int argc, const char* const* argv);

// "0.1.0"
const char* WorkerVersion();

}  // namespace hpo
