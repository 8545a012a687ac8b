// Tested by tests/server/scheduler/capacity_test.cc.
#include "server/placement/placement.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "memory/plan/fit_decision.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

// Far from the streams that samplers use, which count up from the trial's number.
constexpr uint64_t kSeedStream = uint64_t{1} << 63;

// What trials used and where they met OOMs. A refusal by estimate is no evidence: it would confirm
// itself.
std::vector<memory::NeedObservation> NeedsOf(const sampler::History& history) {
  std::vector<memory::NeedObservation> needs;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.prune_reason == PruneReason::kPredictedOutOfMemory) continue;
    for (const sampler::MemoryObservation& seen : trial.memory) {
      needs.push_back({.params = trial.params, .bytes = seen.bytes, .censored = seen.censored});
    }
    if (trial.ran_within.count > 0) {
      needs.push_back({.params = trial.params, .bytes = trial.ran_within, .unmeasured = true});
    }
  }
  return needs;
}

// The findings for GPUs like the worker's.
std::vector<memory::DryRunFinding> FindingsFor(const WorkerFacts& worker,
                                               std::span<const DryRunRecord> dry_runs) {
  const int64_t threads = ResidentThreads(worker.device);
  std::vector<memory::DryRunFinding> findings;
  for (const DryRunRecord& dry_run : dry_runs) {
    const PreflightNeed& need = dry_run.need;
    if (need.capability != worker.device.capability || need.threads != threads) continue;
    findings.push_back({.params = dry_run.params,
                        .measured = need.state == PreflightState::kMeasured,
                        .required = need.required,
                        .margin = need.margin});
  }
  return findings;
}

memory::LearnedNeed LearnedFrom(const StudySpec& study, const sampler::History& history) {
  return memory::LearnedNeed(study.space, study.memory.relevant, NeedsOf(history));
}

// Without an estimate: the batch as it is, by what was learnt.
void PlaceLiterally(const memory::FitDecider& decider, const StudySpec& study, const Trial& trial,
                    Placement& placement) {
  if (const auto config = memory::TrainingConfigOf(trial.params, study.trainer); config.ok()) {
    placement.plan = memory::LiteralPlan(*config);
  }
  const std::optional<memory::LearnedFit> learned =
      decider.Learned(trial.params, placement.capacity);
  if (!learned) return;
  placement.predicted = learned->expected;
  placement.required = learned->needed;
  placement.fits = learned->fits;
  placement.sure = learned->sure;
  if (!placement.fits) {
    placement.misfit =
        absl::StrCat("needs ", FormatBytes(placement.required),
                     " by what other trials used, allowed ", FormatBytes(placement.usable));
  }
}

}  // namespace

bool GoesByDryRuns(const StudySpec& study, const WorkerFacts& worker) {
  if (worker.preflight == PreflightAbility::kNone) return false;
  const bool asked = worker.preflight == PreflightAbility::kAlways ||
                     study.memory.preflight == MemoryPreflight::kDryRun;
  return asked && memory::GoesByLearnedNeed(study.memory, worker);
}

MemoryKnowledge KnowledgeFor(const StudySpec& study, const WorkerFacts& worker,
                             const SeenOfStudy& seen, CalibrationSnapshot calibration,
                             std::shared_ptr<memory::ReplayTable> replays) {
  MemoryKnowledge knowledge;
  knowledge.replays = std::move(replays);
  knowledge.evidence.margins = std::move(calibration.margins);
  knowledge.calibration_version = calibration.version;
  if (memory::GoesByLearnedNeed(study.memory, worker)) {
    knowledge.evidence.learned = LearnedFrom(study, seen.history);
  }
  const std::vector<memory::DryRunFinding> findings = FindingsFor(worker, seen.dry_runs);
  knowledge.evidence.may_dry_run = seen.may_dry_run;
  if (seen.may_dry_run || !findings.empty()) {
    const std::vector<memory::NeedObservation> needs = NeedsOf(seen.history);
    const Bytes capacity = memory::QuantizeCapacity(worker.capacity);
    const Bytes usable = memory::UsableBytes(capacity, worker.device, study.memory);
    // What a study's file says stays free; what is free by default does for the unknown.
    const Bytes spare = study.memory.headroom.has_value() ? Bytes{} : capacity - usable;
    knowledge.evidence.dry_runs.emplace(
        study.space, study.memory.relevant,
        memory::DryRunEvidence{
            .seen = needs, .findings = findings, .usable = usable, .spare = spare});
  }
  return knowledge;
}

bool ParametersExplainOom(const StudySpec& study, const sampler::History& history,
                          const ParamMap& params, Bytes limit) {
  return LearnedFrom(study, history).Explains(params, limit);
}

Placement PlaceTrial(const StudySpec& study, const WorkerFacts& worker, const Trial& trial,
                     const MemoryKnowledge& knowledge) {
  Placement placement;
  placement.capacity = memory::QuantizeCapacity(worker.capacity);
  placement.usable = memory::UsableBytes(placement.capacity, worker.device, study.memory);
  const memory::FitDecider decider(study, worker, knowledge.evidence, knowledge.replays);
  const auto planned = decider.Plan(trial.params, placement.capacity);
  if (planned.ok() && planned->has_value()) {
    placement.plan = (*planned)->plan;
    placement.predicted = (*planned)->estimate.needed_limit;
    placement.required = memory::RequiredBytes(**planned);
    placement.fits = (*planned)->fits;
    if (!placement.fits) placement.misfit = memory::ExplainMisfit(**planned, placement.usable);
  } else {
    PlaceLiterally(decider, study, trial, placement);
  }
  if (trial.forced_micro_batch > 0) {
    placement.plan.micro_batch = std::min(trial.forced_micro_batch, placement.plan.effective_batch);
    const auto forced = decider.Estimate(trial.params, placement.plan);
    if (forced.ok() && forced->has_value()) {
      placement.predicted = (*forced)->estimate.needed_limit;
      placement.required = placement.predicted;
    }
  }
  return placement;
}

sampler::AskContext AskFor(const StudySpec& study, const WorkerFacts& worker, TrialNumber number,
                           const MemoryKnowledge& knowledge) {
  const Bytes capacity = memory::QuantizeCapacity(worker.capacity);
  const auto feasibility = [&]() -> memory::BatchFeasibility {
    if (study.memory.policy == MemoryPolicy::kOff) return {};
    return memory::FitDecider(study, worker, knowledge.evidence, knowledge.replays).At(capacity);
  };
  return sampler::AskContext{.number = number,
                             .space = SpaceFor(study, worker),
                             .capacity = memory::UsableBytes(capacity, worker.device, study.memory),
                             .feasibility = feasibility(),
                             .budget_trials = study.budget.trials};
}

Assignment MakeAssignment(const StudySpec& study, const Trial& trial,
                          const AttemptRecord& attempt) {
  return Assignment{.lease = LeaseRef{trial.id, attempt.attempt.number, attempt.token},
                    .task = {.params = CompleteParams(study, trial.params),
                             .trainer = study.trainer,
                             .memory = study.memory,
                             .objective = study.objectives.front(),
                             .admission = trial.admission,
                             .limit = attempt.limit,
                             .plan = attempt.attempt.plan,
                             .predicted = attempt.attempt.predicted,
                             .seed = SeedOf(study, trial)},
                    .required = attempt.required,
                    .demonstration = trial.demonstration,
                    .constraints = study.constraints};
}

uint64_t SeedOf(const StudySpec& study, const Trial& trial) {
  if (const auto seed = FindInt(trial.params, "seed")) return static_cast<uint64_t>(*seed);
  return Rng(study.sampler.seed, kSeedStream + static_cast<uint64_t>(trial.id.number.value))
      .NextU64();
}

}  // namespace hpo::server
