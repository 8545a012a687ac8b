// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/dispatch/trial_proposer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

// "auto: gp (34 trials); decided by quality: ..."
std::string ProposerOf(const sampler::Suggestion& suggestion) {
  if (suggestion.reason.empty()) return suggestion.sampler;
  return absl::StrCat(suggestion.sampler, "; ", suggestion.reason);
}

}  // namespace

TrialProposer::Proposal TrialProposer::Suggest(StudyRuntime& study, const StudySpec& spec,
                                               const WorkerFacts& facts) const {
  Proposal proposal;
  const auto ask = [&](bool as_last_resort) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    proposal.suggestion = study.sampler.Suggest(spec, [&](const sampler::History& seen) {
      MemoryKnowledge& knowledge = proposal.knowledge;
      knowledge = KnowledgeFor(spec, facts, seen, state_.calibration.Snapshot(), state_.replays);
      memory::LearnedNeed& learned = knowledge.evidence.learned;
      if (as_last_resort) learned = learned.AsLastResort();
      proposal.context = AskFor(spec, facts, study.next_number(), knowledge);
      return proposal.context;
    });
  };
  ask(/*as_last_resort=*/false);
  if (proposal.suggestion.ok()) return proposal;
  // A few errors are no reason to give a whole space up.
  if (proposal.knowledge.evidence.learned.LeavesNothing(proposal.context.capacity)) {
    ask(/*as_last_resort=*/true);
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

absl::StatusOr<Offer> TrialProposer::Propose(StudyRuntime& study, const Asker& asker) {
  if (!study.standing().budget_left) return Offer{};
  absl::ReleasableMutexLock lock(&study.sampler.propose_mutex());
  if (!study.standing().budget_left) return Offer{};
  const StudySpec spec = study.spec();
  const Proposal proposal = Suggest(study, spec, asker.facts);
  const absl::StatusOr<sampler::Suggestion>& suggestion = proposal.suggestion;
  const MemoryKnowledge& knowledge = proposal.knowledge;
  const sampler::AskContext& context = proposal.context;
  if (!suggestion.ok()) {
    const Bytes held = HeldByOthers(study, spec, asker.facts);
    lock.Release();
    std::string obstacle(suggestion.status().message());
    if (held.count > 0) {
      absl::StrAppend(&obstacle, "; others hold ", FormatBytes(held), " of the device");
    }
    const bool ends = !study.standing().budget_left;
    const std::string advice = ends ? "" : advisor_.Advise(spec, asker.facts, knowledge);
    if (!advice.empty()) absl::StrAppend(&obstacle, "; ", advice);
    const bool nothing_left =
        absl::IsFailedPrecondition(suggestion.status()) || absl::IsOutOfRange(suggestion.status());
    return Offer{.assignment = {},
                 .obstacle = std::move(obstacle),
                 .may_pass = ends || held.count > 0 || !nothing_left};
  }
  TrialRecord record{.study_id = study.id()};
  record.trial.id = TrialId{study.name(), context.number};
  record.trial.params = suggestion->params;
  const Placement placement = PlaceTrial(spec, asker.facts, record.trial, knowledge);
  AttemptRecord attempt;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    record.trial.created = transaction.now;
    HPO_RETURN_IF_ERROR(transaction.trials.InsertTrial(record));
    HPO_RETURN_IF_ERROR(transaction.suggestions.Insert(
        context.number, SuggestionRecord{.capacity = context.capacity,
                                         .calibration_version = knowledge.calibration_version,
                                         .history_sequence = suggestion->history_sequence,
                                         .sampler = ProposerOf(*suggestion),
                                         .score = suggestion->score}));
    HPO_ASSIGN_OR_RETURN(attempt, granter_.Start(transaction, study, asker, record, placement));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(study, work));
  granter_.Started(study, asker.facts);
  return Offer{.assignment = MakeAssignment(spec, record.trial, attempt)};
}

}  // namespace hpo::server
