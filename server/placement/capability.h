// What a worker can do for a study, from what it told at registration. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "common/study/study.h"

namespace hpo::server {

// A trial's parameters over the study's trainer defaults.
ParamMap CompleteParams(const StudySpec& study, const ParamMap& params);

// Whether the worker was told to serve the study, or every one (WorkerFacts::serves).
//   FailedPrecondition  it was not; says which it serves, or that it has to be told
absl::Status CheckTold(const std::string& study, const WorkerFacts& worker);

// The commands that start a worker that runs trials of the study, with a GPU and with a CPU:
// "hpo-worker --gpu 0 (or: hpo-worker --device cpu --memory-limit 2GiB)".
std::string WorkerCommands(const StudySpec& study);

// CheckTold, and whether the worker's trainer runs the study's program or task on as many GPUs as
// the study wants, and has the study's data and a model that the study may choose.
//   FailedPrecondition  it lacks one; names it and the command that prepares it, in one line
absl::Status CheckServes(const StudySpec& study, const WorkerFacts& worker);

// Whether the worker can run this configuration: CheckServes, and its model is there.
absl::Status CheckCanRun(const StudySpec& study, const WorkerFacts& worker, const ParamMap& params);

// Free memory of one card differs this much from one look to the next.
constexpr Bytes kCapacityNoise = MiB(64);

// What the worker could give were nobody else on its device: its total, where that is more than
// what it can give now by more than noise.
Bytes CapacityAlone(const WorkerFacts& worker);

// The most bytes that one of `workers` which can run `params` may use of its capacity; nullopt when
// there is none.
std::optional<Bytes> LargestUsable(std::span<const WorkerFacts> workers, const StudySpec& study,
                                   const ParamMap& params);

// Whether the worker's data sets are those that the study was begun with (digest by file).
//   FailedPrecondition  one is not; names study, file and both digests
absl::Status CheckDigests(const std::string& study,
                          const std::map<std::string, std::string>& begun_with,
                          const WorkerFacts& worker);

// Facts about every model that one of `workers` has, for the space's conditions: heavy or base, and
// the family.
std::map<std::string, ParamMap> ModelFactsOf(const StudySpec& study,
                                             std::span<const WorkerFacts> workers);

// The study's space as this worker can serve it: choices of model.name that it lacks are left out,
// facts about its models added. Requires CheckServes.
SearchSpace SpaceFor(const StudySpec& study, const WorkerFacts& worker);

// The same for several: left out are the choices that none of those which serve the study has.
// Where none serves it, all choices stay.
SearchSpace SpaceForAny(const StudySpec& study, std::span<const WorkerFacts> workers);

}  // namespace hpo::server
