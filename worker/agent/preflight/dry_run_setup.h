// The command of a dry run: the program of a trial, as the trial would run it, below hpo_dryrun.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_facts.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {

struct DryRunOptions {
  std::vector<std::string> program;  // DryRunCommand
  std::string command;               // for /bin/sh, with places for a trial's values
  // Put over the worker's own, as for a trial, such as settings of torch's allocator.
  std::map<std::string, std::string> environment;
  std::string folder;            // of this worker's dry runs; what is in it is removed
  std::string mark;              // of their processes (stray_processes.h), and of no others
  std::string lock;              // TakeTurn's file
  bool has_checkpoints = false;  // whether a trial has a folder for them
  int threads = 1;               // processors that the program may use
  absl::Duration timeout = absl::Seconds(120);
};

// Files of a dry run, in its folder.
struct DryRunFiles {
  std::string output;       // folder; the program's {output_dir}
  std::string checkpoints;  // folder; its {checkpoint_dir}
  std::string gpus;         // DescribeEmulatedGpus
  std::string document;     // what hpo_dryrun writes to standard output
  std::string complaints;   // and to standard error
};
DryRunFiles FilesIn(const std::string& folder);

// Makes the folder anew with the files of `job`, whose output_dir and checkpoints are those of
// FilesIn, for `gpus` (GpusOfDryRun), and returns what is to be started.
//   InvalidArgument        a placeholder of the command has no value
//   Internal, Unavailable  the folder cannot be written
absl::StatusOr<TrainerCommand> SetUpDryRun(const DryRunOptions& options, const TrainerJob& job,
                                           const std::vector<DeviceProfile>& gpus);

// Removes all that a dry run has left; what cannot be removed stays.
void RemoveDryRun(const std::string& folder);

}  // namespace hpo::agent
