#include "server/scheduler/placement.h"

#include <algorithm>
#include <optional>

#include "common/memory/fit_decision.h"
#include "common/random.h"
#include "server/scheduler/capability.h"

namespace hpo {
namespace {

// Far from the streams that samplers use, which count up from the trial's number.
constexpr uint64_t kSeedStream = uint64_t{1} << 63;

}  // namespace

Placement PlaceTrial(const StudySpec& study, const WorkerFacts& worker, const Trial& trial,
                     const MemoryKnowledge& knowledge) {
  Placement placement;
  placement.capacity = QuantizeCapacity(worker.capacity);
  placement.usable = UsableBytes(placement.capacity, worker.device, study.memory);
  const FitDecider decider(study, worker, knowledge.calibration.margins);
  const auto planned = decider.Plan(trial.params, placement.capacity);
  if (planned.ok() && planned->has_value()) {
    placement.plan = (*planned)->plan;
    placement.predicted = (*planned)->estimate.needed_limit;
    placement.required = RequiredBytes(**planned);
    placement.fits = (*planned)->fits;
    if (!placement.fits) placement.misfit = ExplainMisfit(**planned, placement.usable);
  } else if (const auto config = TrainingConfigOf(trial.params, study.trainer); config.ok()) {
    placement.plan = LiteralPlan(*config);
  }
  if (trial.forced_micro_batch > 0) {
    placement.plan.micro_batch = std::min(trial.forced_micro_batch, placement.plan.effective_batch);
    const auto forced = decider.Estimate(trial.params, placement.plan);
    if (forced.ok() && forced->has_value()) {
      placement.predicted = (*forced)->needed_limit;
      placement.required = placement.predicted;
    }
  }
  return placement;
}

AskContext AskFor(const StudySpec& study, const WorkerFacts& worker, TrialNumber number,
                  const MemoryKnowledge& knowledge) {
  const Bytes capacity = QuantizeCapacity(worker.capacity);
  return AskContext{
      .number = number,
      .space = SpaceFor(study, worker),
      .capacity = UsableBytes(capacity, worker.device, study.memory),
      .feasibility = study.memory.policy == MemoryPolicy::kOff
                         ? BatchFeasibility()
                         : FitDecider(study, worker, knowledge.calibration.margins).At(capacity)};
}

Assignment MakeAssignment(const StudySpec& study, const Trial& trial, const AttemptRecord& attempt,
                          const SearchSpace& narrowed_space) {
  return Assignment{.lease = LeaseRef{trial.id, attempt.attempt.number, attempt.token},
                    .lease_ttl = absl::ZeroDuration(),
                    .heartbeat_interval = absl::ZeroDuration(),
                    .params = CompleteParams(study, trial.params),
                    .plan = attempt.attempt.plan,
                    .predicted = attempt.attempt.predicted,
                    .required = attempt.required,
                    .limit = attempt.limit,
                    .narrowed_space = narrowed_space,
                    .admission = trial.admission,
                    .demonstration = trial.demonstration,
                    .policy = study.memory.policy,
                    .trainer = study.trainer,
                    .objective = study.objectives.front(),
                    .seed = SeedOf(study, trial)};
}

uint64_t SeedOf(const StudySpec& study, const Trial& trial) {
  if (const auto seed = FindInt(trial.params, "seed")) return static_cast<uint64_t>(*seed);
  return Rng(study.sampler.seed, kSeedStream + static_cast<uint64_t>(trial.id.number.value))
      .NextU64();
}

}  // namespace hpo
