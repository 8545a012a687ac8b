// A worker's name by the engine that started it. Pure.
#pragma once

#include <string>

#include "worker/agent/engine/engine_variables.h"

namespace hpo::agent {

// The name of the place that the worker fills in its fleet, which is the same whenever, and on
// whatever host, the engine starts it again, so that the server takes the newcomer for the same
// worker and gives it its predecessor's trial:
//   Slurm       slurm-JOB, of an array slurm-ARRAY_TASK; ".RANK" behind it in a step of several
//               tasks
//   Kubernetes  of an Indexed Job JOB-INDEX, where the pod's host name or JOB_NAME tells the job,
//               else job-INDEX
//   SkyPilot    of --num-jobs NAME-RANK; ".NODE" behind it in a job of several nodes
// Empty: no engine says so.
// Sources: sbatch(1) and srun(1), "OUTPUT ENVIRONMENT VARIABLES"; Kubernetes, "Job", completion
// mode Indexed; SkyPilot, "Environment variables".
std::string EngineWorkerName(const EngineVariables& variables, const std::string& host);

}  // namespace hpo::agent
