// What a worker is told that gets no trial now. Pure, of the scheduler's state.
#pragma once

#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// How its studies stand.
AcquireResult EmptyAnswer(const SchedulerState& state, const WorkerFacts& facts);

// The same for one that is drained: it is to end.
AcquireResult DrainedAnswer(const SchedulerState& state, const WorkerFacts& facts);

}  // namespace hpo::server
