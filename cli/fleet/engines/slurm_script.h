// The batch script of a fleet on Slurm. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

// A job array for sbatch, one task for each worker. `program` is the path of hpo-worker. A task is
// requeued if its worker leaves with work left (75), cannot start its trainer on this node (77,
// which excludes the node) or meets an internal error (70, at most five times).
// Sources: sbatch(1), scontrol(1) and squeue(1) of Slurm 22.05; common/command_line/exit_status.h.
std::string SlurmScript(const FleetPlan& plan, const std::string& program);

// Whether its options of sbatch, the partition and the type of GPUs are words that Slurm takes.
//   InvalidArgument  with what was expected
absl::Status CheckSlurmWords(const FleetPlan& plan);

// Seconds before the time limit at which Slurm signals a worker: 180, or a quarter of a short
// limit.
int SignalSeconds(const FleetPlan& plan);

}  // namespace hpo::cli
