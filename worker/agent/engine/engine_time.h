// How long the engine that started the worker lets it run.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/agent/engine/engine_variables.h"

namespace hpo::agent {

// What `squeue -o %L` prints of a job: "2-03:04:05", "3:04:05", "4:05"; "UNLIMITED" and "NOT_SET"
// are an infinite time.
//   InvalidArgument  any other text, "INVALID" among them: squeue says so of a job that is over
absl::StatusOr<absl::Duration> ParseSqueueTime(const std::string& text);

// The time from `now` until Slurm ends the job: SLURM_JOB_END_TIME (Slurm 23.02 and later), else
// what `squeue`, a program of that name in PATH, says of SLURM_JOB_ID. An end in the past is not
// believed: the clocks of this host and of Slurm's controller differ. nullopt: no job of Slurm's,
// or nobody tells; the log says so. Waits at most 10 s for squeue.
std::optional<absl::Duration> EngineTimeLeft(const EngineVariables& variables, absl::Time now);

}  // namespace hpo::agent
