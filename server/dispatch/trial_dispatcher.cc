// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/dispatch/trial_dispatcher.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/placement/capability.h"
#include "server/placement/placement.h"
#include "server/storage/answer_store.h"
#include "server/studies/blocked_study.h"
#include "server/studies/held_trials.h"
#include "server/studies/study_end.h"
#include "server/trials/lease_token.h"
#include "server/workers/lease.h"

namespace hpo {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(50);
// How often a waiting call looks whether its caller is still there.
constexpr absl::Duration kCancellationCheck = absl::Milliseconds(100);
// How often a call that is blocked, as far as its own worker goes, looks whether all others are.
constexpr absl::Duration kBlockCheck = absl::Milliseconds(500);
// With nothing left to do anywhere, a worker that asks again at once is slowed to this.
constexpr absl::Duration kFinishedWait = absl::Seconds(1);

constexpr absl::string_view kAcquireTrial = "AcquireTrial";

std::vector<DataSetFacts> DataOf(const StudySpec& spec, const WorkerFacts& facts) {
  std::vector<DataSetFacts> used;
  for (const DataSetFacts& data : facts.data_sets) {
    const bool named = data.name == spec.trainer.train || data.name == spec.trainer.validation;
    if (named) used.push_back(data);
  }
  return used;
}

// "auto: gp (34 trials); decided by quality: ..."
std::string ProposerOf(const Suggestion& suggestion) {
  if (suggestion.reason.empty()) return suggestion.sampler;
  return absl::StrCat(suggestion.sampler, "; ", suggestion.reason);
}

std::string OfStudy(const StudyRuntime& study, absl::string_view obstacle) {
  return absl::StrCat("study ", study.name(), ": ", obstacle);
}

// The trial and the attempt of a recorded answer; nullopt: it cannot be read.
struct GivenTrial {
  std::string study;
  TrialNumber trial;
  AttemptNumber attempt;
};
std::string AnswerText(const GivenTrial& given) {
  return nlohmann::json{
      {"study", given.study}, {"trial", given.trial.value}, {"attempt", given.attempt.value}}
      .dump();
}
std::optional<GivenTrial> AnswerFromText(const std::string& text) {
  const nlohmann::json given = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool whole = given.is_object() && given.contains("study") && given["study"].is_string() &&
                     given.contains("trial") && given["trial"].is_number_integer() &&
                     given.contains("attempt") && given["attempt"].is_number_integer();
  if (!whole) return std::nullopt;
  return GivenTrial{.study = given["study"],
                    .trial = TrialNumber{given["trial"].get<int64_t>()},
                    .attempt = AttemptNumber{given["attempt"].get<int64_t>()}};
}

}  // namespace

AcquireResult TrialDispatcher::EmptyAnswer(const WorkerFacts& facts) const {
  std::vector<StudyRuntime*> studies = state_.studies.All();
  std::erase_if(studies,
                [&](const StudyRuntime* study) { return !CheckTold(study->name(), facts).ok(); });
  AcquireResult answer;
  answer.studies_version = state_.studies.version();
  answer.draining = state_.work.draining();
  answer.all_studies_finished = !studies.empty() && std::all_of(studies.begin(), studies.end(),
                                                                [](const StudyRuntime* study) {
                                                                  return study->standing().finished;
                                                                });
  if (!answer.all_studies_finished) return answer;
  for (const StudyRuntime* study : studies) answer.finished.push_back(EndOf(*study));
  return answer;
}

Assignment TrialDispatcher::Complete(Assignment assignment) const {
  assignment.lease.database = state_.epoch.database;
  return assignment;
}

bool TrialDispatcher::BlocksAll(const WorkerFacts& facts, int64_t generation) const {
  const std::vector<StudyRuntime*> studies = state_.studies.All();
  return std::all_of(studies.begin(), studies.end(), [&](const StudyRuntime* study) {
    return !CheckTold(study->name(), facts).ok() || study->standing().finished ||
           IsBlocked(state_, *study, generation);
  });
}

absl::StatusOr<AcquireResult> TrialDispatcher::AcquireTrial(
    const std::string& session, const std::string& request_id, absl::Duration wait, Bytes capacity,
    const std::function<bool()>& cancelled) {
  const absl::Duration asked = state_.clock.Monotonic();
  HPO_ASSIGN_OR_RETURN(const RegisteredWorker worker, state_.workers.Beat(session, capacity));
  const Asker asker{.facts = worker.facts, .request_id = request_id};
  absl::Duration longest = std::min(wait, kLongestWait);
  Answer found;
  HPO_ASSIGN_OR_RETURN(found.assignment, Replay(asker));
  for (bool first = true;; first = false) {
    const int64_t seen = state_.work.generation();
    // A session that a newer process of the worker has replaced meanwhile gets nothing.
    HPO_RETURN_IF_ERROR(state_.workers.Touch(session, capacity).status());
    if (!found.assignment && !state_.work.draining()) {
      HPO_ASSIGN_OR_RETURN(found, Try(asker, seen));
      if (found.assignment) {
        HPO_RETURN_IF_ERROR(TakeBackUnlessThere(session, found.assignment->lease));
      }
    }
    AcquireResult answer = EmptyAnswer(asker.facts);
    answer.waiting_for = std::exchange(found.obstacle, "");
    const StudyRuntime* const waits_for = std::exchange(found.handed_out, nullptr);
    if (found.assignment) answer.assignment = Complete(*std::move(found.assignment));
    if (answer.assignment || answer.draining) return answer;
    const bool may_be_blocked = !answer.all_studies_finished && !found.may_pass;
    answer.blocked = may_be_blocked && BlocksAll(asker.facts, seen);
    if (answer.all_studies_finished || answer.blocked) {
      // News for a worker that was waiting; one that knows is slowed down.
      if (!first) return answer;
      longest = std::min(longest, kFinishedWait);
    }
    absl::Duration look_at = state_.clock.Monotonic() + kBlockCheck;
    for (bool woken = false; !woken;) {
      const absl::Duration left = longest - (state_.clock.Monotonic() - asked);
      if (left <= absl::ZeroDuration() || (cancelled && cancelled())) {
        // As it is now, not as it was when the wait began.
        if (waits_for != nullptr) {
          answer.waiting_for =
              OfStudy(*waits_for, DescribeHeld(state_, *waits_for, asker.facts.worker));
        }
        return answer;
      }
      woken = state_.work.AwaitAfter(seen, std::min(left, kCancellationCheck));
      // The last one of several workers to be blocked does not wake the others.
      const absl::Duration now = state_.clock.Monotonic();
      if (woken || answer.blocked || !may_be_blocked || now < look_at) continue;
      look_at = now + kBlockCheck;
      answer.blocked = BlocksAll(asker.facts, seen);
      if (answer.blocked) return answer;
    }
  }
}

// The worker may have left, or a newer process of its name may have come, while it was being
// served: a lease granted after that was seen by nobody who gives such back.
absl::Status TrialDispatcher::TakeBackUnlessThere(const std::string& session,
                                                  const LeaseRef& lease) {
  const absl::Status there = state_.workers.Touch(session, std::nullopt).status();
  if (there.ok()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(lease.trial.study));
  const std::optional<HeldLease> held = study->open.FindLease(lease.trial.number);
  if (held && held->attempt == lease.attempt) {
    HPO_RETURN_IF_ERROR(leases_.TakeBack(*study, *held, LeaseLoss::kNeverTaken));
    state_.work.Raise();
  }
  return there;
}

absl::StatusOr<std::optional<Assignment>> TrialDispatcher::Replay(const Asker& asker) {
  std::optional<std::string> answer;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(
        answer, AnswerStore(database).Find(asker.request_id, kAcquireTrial, asker.facts.worker));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.store->Read(read));
  if (!answer) return std::nullopt;
  // What cannot be read, whose lease is gone, or was made by a server before this one that did not
  // make tokens so: this id asks again.
  const std::optional<GivenTrial> given = AnswerFromText(*answer);
  if (!given) return std::nullopt;
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(given->study));
  const std::optional<HeldLease> lease = study->open.FindLease(given->trial);
  if (!lease || lease->attempt != given->attempt) return std::nullopt;
  TrialRecord record;
  AttemptRecord attempt;
  const auto load = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(record, rows.trials.LoadTrial(given->trial));
    HPO_ASSIGN_OR_RETURN(attempt, rows.attempts.LoadAttempt(given->trial, given->attempt));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*state_.store, *study, load));
  attempt.token =
      MakeLeaseToken(state_.epoch.token_secret, asker.request_id, record.trial.id, given->attempt);
  if (HashOfToken(attempt.token) != attempt.token_hash) return std::nullopt;
  return MakeAssignment(study->spec(), record.trial, attempt);
}

std::vector<StudyRuntime*> TrialDispatcher::AbleStudies(const WorkerFacts& facts,
                                                        int64_t generation, Answer& answer) {
  std::vector<StudyRuntime*> able;
  bool is_told = false;
  for (StudyRuntime* study : state_.studies.All()) {
    const StudyStanding standing = study->standing();
    is_told = is_told || CheckTold(study->name(), facts).ok();
    if (standing.finished) continue;
    const absl::Status serves = CheckOffer(*study, facts);
    if (standing.order == StudyOrder::kPause && serves.ok()) {
      study->obstacles.Clear(facts.worker);
      answer.obstacle = OfStudy(*study, "paused");
      answer.may_pass = true;
    } else if (serves.ok()) {
      able.push_back(study);
    } else {
      study->obstacles.Set(facts.worker, {.text = "", .blocked_at = generation});
      answer.obstacle = std::string(serves.message());
    }
  }
  if (!is_told && answer.obstacle.empty()) {
    const std::string name = facts.serves ? absl::StrJoin(*facts.serves, ", ") : "";
    answer.obstacle = absl::StrCat("the server has no study", name.empty() ? "" : " ", name,
                                   "; to create one: hpo study create FILE");
  }
  return able;
}

absl::StatusOr<TrialDispatcher::Answer> TrialDispatcher::Try(const Asker& asker,
                                                             int64_t generation) {
  const std::string& worker = asker.facts.worker;
  Answer answer;  // the last obstacle stays
  const std::vector<StudyRuntime*> able = AbleStudies(asker.facts, generation, answer);
  std::map<const StudyRuntime*, Answer> queued;
  for (StudyRuntime* study : able) {
    study->obstacles.Clear(worker);
    HPO_ASSIGN_OR_RETURN(queued[study], TakeQueued(*study, asker));
    if (queued[study].assignment) return std::move(queued[study]);
  }
  // The study with the fewest running trials first, as they are now: others change them, and a sort
  // whose order changes under it reads outside of what it sorts.
  std::multimap<size_t, StudyRuntime*> by_running;
  for (StudyRuntime* study : able) by_running.emplace(study->open.load().num_held, study);
  for (const auto& [num_running, study] : by_running) {
    HPO_ASSIGN_OR_RETURN(Answer proposed, Propose(*study, asker));
    if (proposed.assignment) return proposed;
    // What a queued trial waits for stays told.
    std::string obstacle = std::move(queued[study].obstacle);
    absl::StrAppend(&obstacle, obstacle.empty() || proposed.obstacle.empty() ? "" : "; ",
                    proposed.obstacle);
    const bool may_pass = queued[study].may_pass || proposed.may_pass;
    WorkerObstacle told{.text = obstacle};
    if (!may_pass) told.blocked_at = generation;
    study->obstacles.Set(worker, std::move(told));
    answer.may_pass = answer.may_pass || may_pass;
    if (!obstacle.empty()) answer.obstacle = OfStudy(*study, obstacle);
  }
  if (answer.obstacle.empty() && !able.empty()) answer.handed_out = able.front();
  return answer;
}

absl::StatusOr<TrialDispatcher::Answer> TrialDispatcher::TakeQueued(StudyRuntime& study,
                                                                    const Asker& asker) {
  if (!study.standing().hands_out) return Answer{};
  const StudySpec spec = study.spec();
  std::vector<QueuedTrial> queue = study.open.queue();
  if (queue.empty()) return Answer{};
  WaitingTrials waiting(state_, study, spec, asker.facts, std::move(queue));
  for (;;) {
    HPO_ASSIGN_OR_RETURN(WaitingTrials::Choice choice, waiting.Choose());
    if (!choice.trial) {
      return Answer{
          .assignment = {}, .obstacle = std::move(choice.obstacle), .may_pass = choice.may_pass};
    }
    const TrialNumber number = choice.trial->id.number;
    AttemptRecord attempt;
    const auto claim = [&](TrialTransaction& transaction) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
      if (record.trial.state != TrialState::kQueued) {
        return absl::AbortedError("another worker took the trial");
      }
      HPO_ASSIGN_OR_RETURN(attempt, Start(transaction, study, asker, record, choice.placement));
      return absl::OkStatus();
    };
    const absl::Status claimed = state_.writer.Write(study, claim);
    if (absl::IsAborted(claimed) || study.QuarantineIfUnreadable(number, claimed)) {
      waiting.Remove(number);
      continue;
    }
    HPO_RETURN_IF_ERROR(claimed);
    Started(study, asker.facts);
    return Answer{.assignment = MakeAssignment(spec, *choice.trial, attempt)};
  }
}

TrialDispatcher::Proposal TrialDispatcher::Suggest(StudyRuntime& study, const StudySpec& spec,
                                                   const WorkerFacts& facts) const {
  Proposal proposal;
  const auto ask = [&](bool as_last_resort) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    proposal.suggestion = study.sampler.Suggest(spec, [&](const History& seen) {
      MemoryKnowledge& knowledge = proposal.knowledge;
      knowledge = KnowledgeFor(spec, facts, seen, state_.calibration.Snapshot(), state_.replays);
      LearnedNeed& learned = knowledge.evidence.learned;
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

Bytes TrialDispatcher::HeldByOthers(StudyRuntime& study, const StudySpec& spec,
                                    const WorkerFacts& facts) const {
  WorkerFacts alone = facts;
  alone.capacity = CapacityAlone(facts);
  if (alone.capacity <= facts.capacity || !Suggest(study, spec, alone).suggestion.ok()) return {};
  return alone.capacity - facts.capacity;
}

absl::StatusOr<TrialDispatcher::Answer> TrialDispatcher::Propose(StudyRuntime& study,
                                                                 const Asker& asker) {
  if (!study.standing().budget_left) return Answer{};
  absl::ReleasableMutexLock lock(&study.sampler.propose_mutex());
  if (!study.standing().budget_left) return Answer{};
  const StudySpec spec = study.spec();
  const Proposal proposal = Suggest(study, spec, asker.facts);
  const absl::StatusOr<Suggestion>& suggestion = proposal.suggestion;
  const MemoryKnowledge& knowledge = proposal.knowledge;
  const AskContext& context = proposal.context;
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
    return Answer{.assignment = {},
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
    HPO_RETURN_IF_ERROR(transaction.trials.InsertSuggestion(
        context.number, SuggestionRecord{.capacity = context.capacity,
                                         .calibration_version = knowledge.calibration_version,
                                         .history_sequence = suggestion->history_sequence,
                                         .sampler = ProposerOf(*suggestion),
                                         .score = suggestion->score}));
    HPO_ASSIGN_OR_RETURN(attempt, Start(transaction, study, asker, record, placement));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(study, work));
  Started(study, asker.facts);
  return Answer{.assignment = MakeAssignment(spec, record.trial, attempt)};
}

void TrialDispatcher::Started(StudyRuntime& study, const WorkerFacts& facts) {
  study.obstacles.Clear(facts.worker);
  for (const DataSetFacts& data : DataOf(study.spec(), facts)) {
    study.PinData(data.name, data.digest);
  }
}

absl::StatusOr<AttemptRecord> TrialDispatcher::Start(TrialTransaction& transaction,
                                                     const StudyRuntime& study, const Asker& asker,
                                                     TrialRecord& record,
                                                     const Placement& placement) {
  for (const DataSetFacts& data : DataOf(study.spec(), asker.facts)) {
    HPO_RETURN_IF_ERROR(
        transaction.studies.PinData(study.id(), study.name(), data.name, data.digest));
  }
  Trial& trial = record.trial;
  AttemptRecord attempt{.study_id = record.study_id, .trial = trial.id.number};
  attempt.attempt.number = AttemptNumber{record.current_attempt.value + 1};
  attempt.attempt.worker = asker.facts.worker;
  attempt.attempt.capacity = placement.capacity;
  attempt.attempt.predicted = placement.predicted;
  attempt.attempt.plan = placement.plan;
  attempt.attempt.started = transaction.now;
  attempt.instance_key = asker.facts.instance_key;
  attempt.token =
      MakeLeaseToken(state_.epoch.token_secret, asker.request_id, trial.id, attempt.attempt.number);
  attempt.token_hash = HashOfToken(attempt.token);
  attempt.limit = placement.usable;
  attempt.required = placement.required;
  HPO_RETURN_IF_ERROR(transaction.attempts.InsertAttempt(attempt));
  trial.state = TrialState::kRunning;
  if (trial.started == absl::InfinitePast()) trial.started = transaction.now;
  record.current_attempt = attempt.attempt.number;
  HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
  transaction.Changed(trial.id.number, "started");
  const GivenTrial given{study.name(), trial.id.number, attempt.attempt.number};
  HPO_RETURN_IF_ERROR(transaction.answers.Forget(asker.request_id, kAcquireTrial));
  HPO_RETURN_IF_ERROR(transaction.answers.Record(
      asker.request_id, kAcquireTrial, asker.facts.worker, AnswerText(given), transaction.now));
  return attempt;
}

}  // namespace hpo
