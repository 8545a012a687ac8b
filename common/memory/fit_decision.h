// May this configuration run here? The batch feasibility function of DESIGN decision 4, over what a
// worker has told the server.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/memory/memory_plan.h"
#include "common/params.h"
#include "common/study.h"
#include "common/worker_facts.h"

namespace hpo {

// The answer for one configuration. `needed` is 0 where nothing is known of it (a trainer that is
// not ours, or an unknown model): then `fits` is true.
struct Fit {
  bool fits = true;
  Bytes needed;
  MemoryPlan plan;
  bool operator==(const Fit&) const = default;
};

// Candidates in, one Fit each out, in order. Pure; called by the sampler for every candidate.
using BatchFeasibility = std::function<std::vector<Fit>(std::span<const ParamMap>)>;

// Bytes a trial may use: capacity less the study's headroom.
Bytes UsableBytes(Bytes capacity, const DeviceProfile& device, const MemorySpec& memory);

// Capacity as decisions see it: rounded down to 64 MiB, so that they can be replayed.
Bytes QuantizeCapacity(Bytes capacity);

// Decides for one worker and study: looks up model and data sets by name in `worker`.
class FitDecider {
 public:
  FitDecider(StudySpec study, WorkerFacts worker);

  // The estimate and plan of `params` at `capacity`; nullopt where nothing is known of it.
  //   InvalidArgument  see PlanMemory
  absl::StatusOr<std::optional<PlannedMemory>> Plan(const ParamMap& params, Bytes capacity) const;

  Fit Decide(const ParamMap& params, Bytes capacity) const;

  // Decide for many, bound to a (quantised) capacity. The function holds a copy of this decider.
  BatchFeasibility At(Bytes capacity) const;

 private:
  StudySpec study_;
  WorkerFacts worker_;
};

// The `Why not` line for people: "needs 9.1 GiB at micro-batch 1, allowed 8.0 GiB".
std::string ExplainMisfit(const PlannedMemory& planned, Bytes usable);

}  // namespace hpo
