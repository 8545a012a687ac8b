// How a trial would run on a worker: plan, limit, need. Pure.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "memory/plan/fit_decision.h"
#include "sampler/api/history.h"
#include "sampler/api/sampler.h"
#include "server/placement/live_calibration.h"
#include "server/storage/records.h"

namespace hpo::server {

// What trials have taught about memory, with the version of calibration that it holds, and what was
// replayed before (placements without it replay for themselves).
struct MemoryKnowledge {
  memory::MemoryEvidence evidence;
  int64_t calibration_version = 0;
  std::shared_ptr<memory::ReplayTable> replays;
};

// Whether the worker dry-runs configurations of the study before it is given them: the study or the
// worker asks for it, the worker can, and decisions for it go by LearnedNeed.
bool GoesByDryRuns(const StudySpec& study, const WorkerFacts& worker);

// What a study has shown of the memory that its configurations need.
struct SeenOfStudy {
  const sampler::History& history;
  std::span<const DryRunRecord> dry_runs = {};
  // Whether the worker can dry-run one more: GoesByDryRuns, and dry runs do not keep failing.
  bool may_dry_run = false;
};

// What LearnedNeed and DryRunNeed learn from, where decisions for `worker` go by it, is `seen`.
MemoryKnowledge KnowledgeFor(const StudySpec& study, const WorkerFacts& worker,
                             const SeenOfStudy& seen, CalibrationSnapshot calibration,
                             std::shared_ptr<memory::ReplayTable> replays = nullptr);

// Whether an out-of-memory error of `params` at `limit` (0: not known) may be due to parameters of
// the study. False: no parameter explains it (learned_need.h), so that it says nothing of others.
bool ParametersExplainOom(const StudySpec& study, const sampler::History& history,
                          const ParamMap& params, Bytes limit);

struct Placement {
  Bytes capacity;  // quantised
  Bytes usable;    // of it, less the study's headroom: the trial's limit
  MemoryPlan plan;
  Bytes predicted;  // 0: no estimate
  Bytes required;   // the same with its margin: must be free at the start
  bool fits = true;
  bool sure = true;    // false: a dry run would tell
  std::string misfit;  // why not, for people
};

// `worker.capacity` is what the worker can give now.
Placement PlaceTrial(const StudySpec& study, const WorkerFacts& worker, const Trial& trial,
                     const MemoryKnowledge& knowledge);

// What to ask the study's sampler on behalf of `worker`. Capacity is in usable bytes, the unit of
// the limits at which trials met OOMs.
sampler::AskContext AskFor(const StudySpec& study, const WorkerFacts& worker, TrialNumber number,
                           const MemoryKnowledge& knowledge);

// What the worker is told.
Assignment MakeAssignment(const StudySpec& study, const Trial& trial, const AttemptRecord& attempt);

// The trial's random seed: its parameter `seed`, or a mix of the study's seed and its number.
uint64_t SeedOf(const StudySpec& study, const Trial& trial);

}  // namespace hpo::server
