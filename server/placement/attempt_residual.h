// What an attempt's end says about its memory estimate. Pure.
#pragma once

#include <memory>
#include <optional>

#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "memory/need/replay_table.h"
#include "server/storage/records.h"

namespace hpo::server {

// An attempt that completed without an OOM is measured against the estimate of the plan it ended
// with; if it was replanned, of the one it began with, as that is the larger. An OOM of kind A
// or D, at the end or recovered from, bounds the estimate of the plan that met it (the smallest
// tried, where it ended the attempt). nullopt for any other end (a stopped or failed attempt may
// not have met its peak; kinds B, C and E are not the configuration's), where there is no estimate,
// and where the score is nullopt. `worker` ran the attempt: its models and data are what the
// estimate is made of; `replays` are those made before.
std::optional<ResidualRecord> ResidualOf(const StudySpec& study, const WorkerFacts& worker,
                                         const ParamMap& params, const AttemptRecord& attempt,
                                         const FinishRequest& request,
                                         std::shared_ptr<memory::ReplayTable> replays = nullptr);

}  // namespace hpo::server
