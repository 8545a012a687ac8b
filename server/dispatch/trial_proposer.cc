// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/dispatch/trial_proposer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/dispatch/preflight_policy.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

// "auto: gp (34 trials); decided by quality: ..."
std::string ProposerOf(const sampler::Suggestion& suggestion) {
  if (suggestion.reason.empty()) return suggestion.sampler;
  return absl::StrCat(suggestion.sampler, "; ", suggestion.reason);
}

// On GPUs like the worker's.
int64_t NumDryRuns(const StudyRuntime& study, const WorkerFacts& facts) {
  const std::vector<DryRunRecord> dry_runs = study.dry_runs.All();
  return std::count_if(dry_runs.begin(), dry_runs.end(), [&](const DryRunRecord& dry_run) {
    return dry_run.position == 0 && dry_run.need.capability == facts.device.capability &&
           dry_run.need.threads == ResidentThreads(facts.device);
  });
}

Offer Waits() { return Offer{.assignment = {}, .obstacle = kDryRunFirst, .may_pass = true}; }

}  // namespace

TrialProposer::Proposal TrialProposer::Suggest(StudyRuntime& study, const StudySpec& spec,
                                               const WorkerFacts& facts) const {
  Proposal proposal;
  // No two workers are to be proposed the same while it is held for one of them.
  const TrialNumber number{study.next_number().value +
                           desk_.NumHeldForOthers(study.id(), facts.worker)};
  enum class Scope { kSavesDryRuns, kAll, kLastResort };
  const auto ask = [&](Scope scope) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    proposal.suggestion = study.sampler.Suggest(spec, [&](const sampler::History& seen) {
      MemoryKnowledge& knowledge = proposal.knowledge;
      knowledge = state_.KnowledgeBy(seen, study, facts);
      memory::LearnedNeed& learned = knowledge.evidence.learned;
      knowledge.evidence.saves_dry_runs = scope == Scope::kSavesDryRuns;
      if (scope == Scope::kLastResort) {
        learned = learned.AsLastResort();
        knowledge.evidence.dry_runs.reset();
      }
      proposal.context = AskFor(spec, facts, number, knowledge);
      return proposal.context;
    });
  };
  if (SavesDryRuns(NumDryRuns(study, facts), number.value)) ask(Scope::kSavesDryRuns);
  if (!proposal.suggestion.ok()) ask(Scope::kAll);
  if (proposal.suggestion.ok()) return proposal;
  // A few errors are no reason to give a whole space up.
  if (proposal.knowledge.evidence.learned.LeavesNothing(proposal.context.capacity)) {
    ask(Scope::kLastResort);
  }
  return proposal;
}

Bytes TrialProposer::HeldByOthers(StudyRuntime& study, const StudySpec& spec,
                                  const WorkerFacts& facts) const {
  WorkerFacts alone = facts;
  alone.capacity = CapacityAlone(facts);
  if (alone.capacity <= facts.capacity || !Suggest(study, spec, alone).suggestion.ok()) return {};
  return alone.capacity - facts.capacity;
}

TrialProposer::Chosen TrialProposer::Place(const StudyRuntime& study, const StudySpec& spec,
                                           const WorkerFacts& facts,
                                           const Proposal& proposal) const {
  const sampler::Suggestion& suggestion = *proposal.suggestion;
  Trial trial;
  trial.id = TrialId{study.name(), proposal.context.number};
  trial.params = suggestion.params;
  return {.params = suggestion.params,
          .origin = {.capacity = proposal.context.capacity,
                     .calibration_version = proposal.knowledge.calibration_version,
                     .history_sequence = suggestion.history_sequence,
                     .sampler = ProposerOf(suggestion),
                     .score = suggestion.score},
          .placement = PlaceTrial(spec, facts, trial, proposal.knowledge)};
}

absl::StatusOr<Offer> TrialProposer::Grant(StudyRuntime& study, const StudySpec& spec,
                                           const Asker& asker, const Chosen& chosen) {
  TrialRecord record{.study_id = study.id()};
  record.trial.id = TrialId{study.name(), study.next_number()};
  record.trial.params = chosen.params;
  AttemptRecord attempt;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    record.trial.created = transaction.now;
    HPO_RETURN_IF_ERROR(transaction.trials.InsertTrial(record));
    HPO_RETURN_IF_ERROR(transaction.suggestions.Insert(record.trial.id.number, chosen.origin));
    HPO_ASSIGN_OR_RETURN(attempt,
                         granter_.Start(transaction, study, asker, record, chosen.placement));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(study, work));
  granter_.Started(study, asker.facts);
  desk_.news().Raise();
  return Offer{.assignment = MakeAssignment(spec, record.trial, attempt)};
}

void TrialProposer::Hold(const StudyRuntime& study, const WorkerFacts& facts,
                         const Chosen& chosen) {
  desk_.Hold(facts.worker, {.study_id = study.id(),
                            .study = study.name(),
                            .params = chosen.params,
                            .origin = chosen.origin,
                            .since = state_.clock.Monotonic()});
}

absl::StatusOr<std::optional<Offer>> TrialProposer::TakeHeld(StudyRuntime& study,
                                                             const StudySpec& spec,
                                                             const Asker& asker) {
  const std::string& worker = asker.facts.worker;
  const std::optional<HeldProposal> held = desk_.Of(worker);
  if (!held.has_value() || held->study_id != study.id() || held->queued.has_value()) {
    return std::nullopt;
  }
  Trial trial;
  trial.id = TrialId{study.name(), study.next_number()};
  trial.params = held->params;
  const MemoryKnowledge knowledge = state_.Knowledge(study, asker.facts);
  const Placement placement = PlaceTrial(spec, asker.facts, trial, knowledge);
  const HeldSituation situation{.answered = held->answered,
                                .held_for = state_.clock.Monotonic() - held->since,
                                .sure = placement.sure,
                                .fits = placement.fits,
                                .may_dry_run = knowledge.evidence.may_dry_run};
  const PreflightStep step = StepForHeld(situation);
  if (step == PreflightStep::kWait) return Waits();
  if (IsOverdue(situation)) study.dry_runs.Ended(worker, /*failed=*/true);
  desk_.Drop(worker);
  if (step == PreflightStep::kDrop) return std::nullopt;
  HPO_ASSIGN_OR_RETURN(
      Offer offer, Grant(study, spec, asker,
                         {.params = held->params, .origin = held->origin, .placement = placement}));
  return offer;
}

bool TrialProposer::LookAhead(StudyRuntime& study, const WorkerFacts& facts) {
  absl::MutexLock lock(&study.sampler.propose_mutex());
  if (!study.standing().budget_left) return false;
  WorkerFacts alone = facts;
  alone.capacity = CapacityAlone(facts);
  const StudySpec spec = study.spec();
  const Proposal proposal = Suggest(study, spec, alone);
  if (!proposal.suggestion.ok()) return false;
  const Chosen chosen = Place(study, spec, alone, proposal);
  if (StepFor(chosen.placement.sure, desk_.Of(facts.worker).has_value()) == PreflightStep::kHold) {
    Hold(study, facts, chosen);
  }
  return true;
}

absl::StatusOr<Offer> TrialProposer::Propose(StudyRuntime& study, const Asker& asker) {
  if (!study.standing().budget_left) return Offer{};
  absl::ReleasableMutexLock lock(&study.sampler.propose_mutex());
  if (!study.standing().budget_left) return Offer{};
  const StudySpec spec = study.spec();
  HPO_ASSIGN_OR_RETURN(std::optional<Offer> held, TakeHeld(study, spec, asker));
  if (held.has_value()) return *std::move(held);
  const Proposal proposal = Suggest(study, spec, asker.facts);
  if (!proposal.suggestion.ok()) {
    const absl::Status& status = proposal.suggestion.status();
    const Bytes held_by_others = HeldByOthers(study, spec, asker.facts);
    lock.Release();
    std::string obstacle(status.message());
    if (held_by_others.count > 0) {
      absl::StrAppend(&obstacle, "; others hold ", FormatBytes(held_by_others), " of the device");
    }
    const bool ends = !study.standing().budget_left;
    const std::string advice = ends ? "" : advisor_.Advise(spec, asker.facts, proposal.knowledge);
    if (!advice.empty()) absl::StrAppend(&obstacle, "; ", advice);
    const bool nothing_left = absl::IsFailedPrecondition(status) || absl::IsOutOfRange(status);
    return Offer{.assignment = {},
                 .obstacle = std::move(obstacle),
                 .may_pass = ends || held_by_others.count > 0 || !nothing_left};
  }
  const Chosen chosen = Place(study, spec, asker.facts, proposal);
  const PreflightStep step =
      StepFor(chosen.placement.sure, desk_.Of(asker.facts.worker).has_value());
  if (step == PreflightStep::kGive) return Grant(study, spec, asker, chosen);
  if (step == PreflightStep::kHold) Hold(study, asker.facts, chosen);
  return Waits();
}

}  // namespace hpo::server
