// `hpo run`: a study from its file to its best trial, with a server and a worker of its own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct RunOptions {
  std::string study;   // a file, or a preset's name
  std::string name;    // of the study, over the file's; empty: the file's
  std::string folder;  // empty: $XDG_DATA_HOME/hpo/runs/NAME
  std::optional<int64_t> trials;
  std::optional<int64_t> add_trials;
  std::optional<double> target;
  bool open = false;         // the study's page, in a browser
  bool edit = false;         // takes changed ranges and choices of the file
  std::string export_to;     // folder for the best model; empty: none
  std::string memory_limit;  // empty: without a card, half of what is free, shared among
                             // the workers
  std::string gpu;           // as hpo-worker's --gpu; empty: those visible, where there are any
  std::string device;        // empty, "cpu" or "cuda"
  int num_workers = 1;       // on the CPU
  bool preflight = false;    // hpo-worker's --preflight
  // hpo-worker's options with their values, and any others of its arguments.
  std::vector<std::pair<std::string, std::string>> passed_on;
  std::vector<std::string> worker_arguments;
};

// Runs until the study is finished or blocked (StudyStatus), or until SIGINT or SIGTERM: running it
// again goes on. Where nothing happens for a while, a line says what it waits for.
// An exit status:
//   0    a trial has completed and the study is finished
//   6    it is finished, and no trial has completed
//   7    failures ended it
//   8    nothing more can run unless something is changed; it says what
//   130  a signal came
absl::StatusOr<int> RunStudy(Session& session, const RunOptions& options);

}  // namespace hpo::cli
