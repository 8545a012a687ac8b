// A worker as people see it.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/study_status.h"
#include "server/studies/scheduler_state.h"
#include "server/workers/worker_registry.h"

namespace hpo::server {

struct WorkerTrial {
  TrialId id;
  absl::Time started = absl::InfinitePast();  // its attempt
  LeaseBeat said;                             // by the worker's last heartbeat
};

// Which trial each worker runs, by the worker's name.
std::map<std::string, WorkerTrial> TrialsByWorker(const SchedulerState& state);

// `trials`: TrialsByWorker.
WorkerStatus DescribeWorker(const SchedulerState& state, const RegisteredWorker& worker,
                            const std::map<std::string, WorkerTrial>& trials);

}  // namespace hpo::server
