// How much memory a configuration needs on a worker, and whether it fits there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "memory/need/memory_estimate.h"
#include "server/placement/placement.h"
#include "server/workers/worker_registry.h"

namespace hpo::server {

// The worker to estimate for: the one of this name; an empty name is the one of the largest
// capacity.
//   FailedPrecondition  there is none; lists those there are
absl::StatusOr<WorkerFacts> ChooseWorker(const WorkerRegistry& registry, const std::string& name);

// By an estimate; where there is none, by what `knowledge` has learned, as a placement does.
//   FailedPrecondition  nothing is known of the configuration
absl::StatusOr<memory::MemoryAnswer> AnswerMemory(const StudySpec& spec, const WorkerFacts& facts,
                                                  const MemoryKnowledge& knowledge,
                                                  const ParamMap& params, Bytes capacity);

}  // namespace hpo::server
