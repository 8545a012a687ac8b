// Tested by tests/server/scheduler/waiting_order_test.cc.
#include "server/dispatch/waiting_trials.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/plan/fit_decision.h"
#include "server/placement/capability.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {
namespace {

SmallerCards SmallerThan(const SchedulerState& state, const StudyRuntime& study,
                         const StudySpec& spec, const WorkerFacts& facts) {
  std::vector<WorkerFacts> serving;
  for (WorkerFacts& worker : state.workers.Alive()) {
    if (CheckOffer(study, worker).ok()) serving.push_back(std::move(worker));
  }
  const Bytes usable =
      memory::UsableBytes(memory::QuantizeCapacity(facts.capacity), facts.device, spec.memory);
  return SmallerCards(spec, usable, serving,
                      [&](const WorkerFacts& worker) { return state.Knowledge(study, worker); });
}

}  // namespace

absl::Status CheckOffer(const StudyRuntime& study, const WorkerFacts& facts) {
  const absl::Status serves =
      Annotate(CheckServes(study.spec(), facts), absl::StrCat("study ", study.name()));
  return serves.ok() ? CheckDigests(study.name(), study.data_digests(), facts) : serves;
}

WaitingTrials::WaitingTrials(SchedulerState& state, StudyRuntime& study, const StudySpec& spec,
                             const WorkerFacts& facts, std::vector<QueuedTrial> queue)
    : state_(state),
      study_(study),
      spec_(spec),
      facts_(facts),
      queue_(std::move(queue)),
      knowledge_(state.Knowledge(study, facts)),
      smaller_(SmallerThan(state, study, spec, facts)) {}

absl::StatusOr<WaitingTrials::Choice> WaitingTrials::Choose() {
  Choice choice;
  std::optional<Bytes> best_least;
  for (const QueuedTrial& queued : queue_) {
    const std::optional<Bytes> least = smaller_.LeastUsableFor(queued.trial);
    if (choice.trial && least && *least <= *best_least) continue;
    HPO_ASSIGN_OR_RETURN(const std::optional<Placement> placement, Place(queued.trial, choice));
    if (!placement) continue;
    choice.trial = queued.trial;
    choice.placement = *placement;
    best_least = least;
    if (!least) break;
  }
  return choice;
}

void WaitingTrials::Remove(TrialNumber number) {
  std::erase_if(queue_,
                [number](const QueuedTrial& queued) { return queued.trial.id.number == number; });
}

absl::StatusOr<std::optional<Placement>> WaitingTrials::Place(const Trial& trial, Choice& choice) {
  std::string& obstacle = choice.obstacle;
  const std::string name = absl::StrCat("trial #", trial.id.number.value);
  if (const absl::Status able = CheckCanRun(spec_, facts_, trial.params); !able.ok()) {
    obstacle = absl::StrCat(name, ": ", able.message());
    return std::nullopt;
  }
  const Placement placement = PlaceTrial(spec_, facts_, trial, knowledge_);
  if (trial.min_capacity.count > 0 && placement.usable <= trial.min_capacity) {
    obstacle =
        absl::StrCat(name, " waits for a worker with more than ", FormatBytes(trial.min_capacity));
    return std::nullopt;
  }
  if (placement.fits || !trial.admission) return placement;
  WorkerFacts alone = facts_;
  alone.capacity = CapacityAlone(facts_);
  const bool shared = alone.capacity > facts_.capacity;
  const Placement best = shared ? PlaceTrial(spec_, alone, trial, knowledge_) : placement;
  const std::optional<Bytes> largest = state_.workers.LargestUsable(spec_, trial.params);
  if (best.fits) {
    obstacle = absl::StrCat(name, " ", placement.misfit, "; others hold ",
                            FormatBytes(alone.capacity - facts_.capacity), " of the device");
    choice.may_pass = true;
  } else if (largest && best.usable < *largest) {
    obstacle = absl::StrCat(name, " ", placement.misfit);
  } else {
    HPO_RETURN_IF_ERROR(EndAsPredicted(trial, best));
  }
  return std::nullopt;
}

absl::Status WaitingTrials::EndAsPredicted(const Trial& trial, const Placement& placement) {
  const TrialNumber number = trial.id.number;
  const auto end = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
    // Another worker was faster.
    if (record.trial.state != TrialState::kQueued) return absl::OkStatus();
    record.trial.state = TrialState::kPruned;
    record.trial.outcome = OutOfMemory{.predicted = true,
                                       .limit = placement.usable,
                                       .needed = placement.required,
                                       .plan = placement.plan,
                                       .message = placement.misfit};
    record.trial.ended = transaction.now;
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
    transaction.Changed(number, "finished");
    return absl::OkStatus();
  };
  const absl::Status ended = state_.writer.Write(study_, end);
  return study_.QuarantineIfUnreadable(number, ended) ? absl::OkStatus() : ended;
}

}  // namespace hpo::server
