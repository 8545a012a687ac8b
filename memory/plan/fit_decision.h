// May this configuration run here? Asked of many candidates at once, over what a worker
// has told the server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "memory/learned/dry_run_need.h"
#include "memory/learned/learned_need.h"
#include "memory/need/calibration.h"
#include "memory/need/replay_table.h"
#include "memory/plan/memory_plan.h"

namespace hpo::memory {

// The answer for one configuration. `needed`, with its margin, is what decided: on a GPU no less
// than what a replay needs where that fits, no more where it does not. 0 where nothing is known of
// the configuration: then `fits` is true.
struct Fit {
  bool fits = true;
  Bytes needed;
  MemoryPlan plan;
  bool operator==(const Fit&) const = default;
};

// Candidates in, one Fit each out, in order. Pure; called by the sampler for every candidate.
using BatchFeasibility = std::function<std::vector<Fit>(std::span<const ParamMap>)>;

// Bytes a trial may use: `capacity` less the study's headroom, never negative. Without a headroom
// in the study: 2 % of the capacity, at least 256 MiB, on a GPU; nothing on a CPU, where the budget
// is counted exactly.
Bytes UsableBytes(Bytes capacity, const DeviceProfile& device, const MemorySpec& memory);

// Capacity as decisions see it: rounded down to 64 MiB (to 1 MiB below 1 GiB, where 64 MiB would be
// much of it), so that they can be replayed.
Bytes QuantizeCapacity(Bytes capacity);

// The smallest capacity, to 1 MiB, of which `usable` bytes are usable.
Bytes CapacityFor(Bytes usable, const DeviceProfile& device, const MemorySpec& memory);

// What must be free for `planned` to start: its need with its margin.
Bytes RequiredBytes(const PlannedMemory& planned);

// What trials have taught about memory.
struct MemoryEvidence {
  MarginTable margins;                 // of estimates
  LearnedNeed learned;                 // where there is none
  std::optional<DryRunNeed> dry_runs;  // decides before `learned` does
  // Whether a configuration may be dry-run where `dry_runs` is not sure; else `learned` decides.
  bool may_dry_run = false;
  // It had better not be: then such a configuration counts as one that does not fit.
  bool saves_dry_runs = false;
};

// Whether decisions for this worker go by LearnedNeed where there is no estimate: a trainer that
// plans could split what does not fit, unless the policy is strict.
bool GoesByLearnedNeed(const MemorySpec& memory, const WorkerFacts& worker);

// Decides for one worker and study. A configuration fits where its estimate with the margin of its
// class (calibration.h) is within the usable bytes. There is no estimate where the policy is kOff,
// the worker's trainer does not plan, or the model is not among the worker's or not one that
// TrainerSupports: then LearnedNeed decides where GoesByLearnedNeed, else the configuration fits. A
// data set that the worker lacks, or has not measured with the model's vocabulary, counts as one
// whose rows are all tok.max_length long. Immutable but for what it
// remembers; safe from any thread.
class FitDecider {
 public:
  // `replays` may be shared by any number of deciders; none: one of its own.
  FitDecider(const StudySpec& study, const WorkerFacts& worker, MemoryEvidence evidence = {},
             std::shared_ptr<ReplayTable> replays = nullptr);

  // The estimate and plan of `params` (the study's trainer defaults fill the gaps) within the
  // usable bytes of `capacity`; nullopt where there is none. As Estimate it is a replay on a GPU:
  // milliseconds, where it is not known yet.
  //   InvalidArgument  see TrainingConfigOf, PlanMemory
  absl::StatusOr<std::optional<PlannedMemory>> Plan(const ParamMap& params, Bytes capacity) const;

  // The estimate of `params` under a plan that was chosen elsewhere, with its margin; nullopt as in
  // Plan. `fits` is true.
  //   InvalidArgument  see TrainingConfigOf, EstimateMemory
  absl::StatusOr<std::optional<PlannedMemory>> Estimate(const ParamMap& params,
                                                        const MemoryPlan& plan) const;

  // NeedRangeOf with margins, for those who look at thousands of configurations: RequiredBytes of
  // Estimate is between the two, and what it is decides. Microseconds. Codes as Estimate.
  struct Range {
    Bytes least;
    Bytes most;
  };
  absl::StatusOr<std::optional<Range>> RequiredRange(const ParamMap& params,
                                                     const MemoryPlan& plan) const;

  // What LearnedNeed says within the usable bytes of `capacity`; nullopt where decisions do not go
  // by it.
  std::optional<LearnedFit> Learned(const ParamMap& params, Bytes capacity) const;

  // As Plan, then as Learned; on a card by replays alone, which stop where the limit is exceeded.
  // Parameters that are invalid fit: to refuse them is not memory's business.
  Fit Decide(const ParamMap& params, Bytes capacity) const;

  // Decide for many, bound to `capacity` (quantised by the caller). The function holds a copy of
  // this decider, and remembers what it decided: configurations that differ only in what does not
  // matter to memory are decided once.
  BatchFeasibility At(Bytes capacity) const;

  const TrainerSpec& trainer() const { return trainer_; }
  const DeviceProfile& device() const { return device_; }
  const MemorySpec& memory() const { return memory_; }

 private:
  class Frontier;

  // The name in `params`, or the study's default; nullopt where it is not one of models_.
  std::optional<std::string> KnownModelOf(const ParamMap& params) const;
  absl::StatusOr<std::optional<EstimateInput>> InputOf(const ParamMap& params) const;
  enum class Effort { kToDecide, kToKnow };
  absl::StatusOr<std::optional<PlannedMemory>> PlanWith(const ParamMap& params, Bytes capacity,
                                                        Effort effort) const;
  absl::StatusOr<PlannedMemory> PlanWithMargin(const EstimateInput& input, Bytes usable,
                                               Effort effort) const;
  absl::StatusOr<MemoryEstimate> Predict(const EstimateInput& input, const MemoryPlan& plan) const;
  double MarginOf(const MemoryEstimate& estimate) const;

  TrainerSpec trainer_;
  MemorySpec memory_;
  DeviceProfile device_;
  MemoryEvidence evidence_;
  std::shared_ptr<ReplayTable> replays_;
  bool learns_;
  // By model name: all of an estimate's input but the configuration.
  std::map<std::string, EstimateInput> models_;
};

// The `Why not` line for people: "needs 9.1 GiB at micro-batch 1, allowed 8.0 GiB"; with a margin
// "needs 9.1 GiB and 3.0 % margin at ...".
std::string ExplainMisfit(const PlannedMemory& planned, Bytes usable);

}  // namespace hpo::memory
