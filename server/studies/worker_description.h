// A worker as people see it.
#pragma once

#include <map>
#include <string>

#include "common/base/ids.h"
#include "common/study/study_status.h"
#include "server/studies/scheduler_state.h"
#include "server/workers/worker_registry.h"

namespace hpo::server {

// Which trial each worker runs, by the worker's name.
std::map<std::string, TrialId> TrialsByWorker(const SchedulerState& state);

// `trials`: TrialsByWorker.
WorkerStatus DescribeWorker(const SchedulerState& state, const RegisteredWorker& worker,
                            const std::map<std::string, TrialId>& trials);

}  // namespace hpo::server
