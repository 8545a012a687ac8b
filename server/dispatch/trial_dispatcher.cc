// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/dispatch/trial_dispatcher.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "server/dispatch/empty_answer.h"
#include "server/dispatch/waiting_trials.h"
#include "server/placement/capability.h"
#include "server/studies/blocked_study.h"
#include "server/studies/held_trials.h"
#include "server/workers/lease.h"

namespace hpo::server {
namespace {

// How often a call that is blocked, as far as its own worker goes, looks whether all others are.
constexpr absl::Duration kBlockCheck = absl::Milliseconds(500);
// With nothing left to do anywhere, a worker that asks again at once is slowed to this.
constexpr absl::Duration kFinishedWait = absl::Seconds(1);

// What people are told of a worker that got this answer; `waits_for`: Offer::handed_out.
IdleCause CauseOf(const AcquireResult& answer, const StudyRuntime* waits_for) {
  if (answer.draining) return {.why = "hpo-server is shutting down", .study = ""};
  if (answer.all_studies_finished) return {.why = "its studies have ended", .study = ""};
  return {.why = answer.waiting_for, .study = waits_for == nullptr ? "" : waits_for->name()};
}

}  // namespace

Assignment TrialDispatcher::Complete(Assignment assignment) const {
  assignment.lease.database = state_.epoch.database;
  const absl::StatusOr<StudyRuntime*> study = state_.studies.Find(assignment.lease.trial.study);
  if (study.ok()) assignment.longest_time = (*study)->durations.Longest();
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
  absl::Duration longest = std::min(wait, kLongestAcquire);
  Offer found;
  HPO_ASSIGN_OR_RETURN(found.assignment, granter_.Replay(asker));
  for (bool first = true;; first = false) {
    const int64_t seen = state_.work.generation();
    // A session that a newer process of the worker has replaced meanwhile gets nothing.
    HPO_RETURN_IF_ERROR(state_.workers.Touch(session, capacity).status());
    if (!found.assignment && state_.drained.Contains(asker.facts.worker)) {
      desk_.Drop(asker.facts.worker);
      // As below: news for one that waited, and one that knows is slowed down.
      const absl::Duration pause = first ? std::min(longest, kFinishedWait) : absl::ZeroDuration();
      if (state_.work.AwaitAfter(seen, pause)) continue;
      return DrainedAnswer(state_, asker.facts);
    }
    if (!found.assignment && !state_.work.draining()) {
      HPO_ASSIGN_OR_RETURN(found, Try(asker, seen));
      if (found.assignment) {
        HPO_RETURN_IF_ERROR(granter_.TakeBackUnlessThere(session, found.assignment->lease));
      }
    }
    AcquireResult answer = EmptyAnswer(state_, asker.facts);
    answer.waiting_for = std::exchange(found.obstacle, "");
    const StudyRuntime* const waits_for = std::exchange(found.handed_out, nullptr);
    state_.workers.SetIdle(session, found.assignment ? IdleCause() : CauseOf(answer, waits_for));
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
              OfStudy(waits_for->name(), DescribeHeld(state_, *waits_for, asker.facts.worker));
        }
        return answer;
      }
      woken = state_.work.AwaitAfter(seen, std::min(left, kAcquireCancellationCheck));
      // The last one of several workers to be blocked does not wake the others.
      const absl::Duration now = state_.clock.Monotonic();
      if (woken || answer.blocked || !may_be_blocked || now < look_at) continue;
      look_at = now + kBlockCheck;
      answer.blocked = BlocksAll(asker.facts, seen);
      if (answer.blocked) return answer;
    }
  }
}

std::vector<StudyRuntime*> TrialDispatcher::AbleStudies(const WorkerFacts& facts,
                                                        int64_t generation, Offer& offer) {
  std::vector<StudyRuntime*> able;
  bool is_told = false;
  for (StudyRuntime* study : state_.studies.All()) {
    const StudyStanding standing = study->standing();
    is_told = is_told || CheckTold(study->name(), facts).ok();
    if (standing.finished) continue;
    const absl::Status serves = CheckOffer(*study, facts);
    if (standing.order == StudyOrder::kPause && serves.ok()) {
      study->obstacles.Clear(facts.worker);
      offer.obstacle = OfStudy(study->name(), "paused");
      offer.may_pass = true;
    } else if (serves.ok()) {
      able.push_back(study);
    } else {
      study->obstacles.Set(facts.worker, {.text = "", .blocked_at = generation});
      offer.obstacle = std::string(serves.message());
    }
  }
  if (!is_told && offer.obstacle.empty()) {
    const std::string name = facts.serves ? absl::StrJoin(*facts.serves, ", ") : "";
    offer.obstacle = absl::StrCat("the server has no study", name.empty() ? "" : " ", name,
                                  "; to create one: hpo study create FILE");
  }
  return able;
}

absl::StatusOr<Offer> TrialDispatcher::Try(const Asker& asker, int64_t generation) {
  const std::string& worker = asker.facts.worker;
  Offer offer;  // the last obstacle stays
  const std::vector<StudyRuntime*> able = AbleStudies(asker.facts, generation, offer);
  DropStale(asker, able);
  std::map<const StudyRuntime*, Offer> queued;
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
    HPO_ASSIGN_OR_RETURN(Offer proposed, proposer_.Propose(*study, asker));
    if (proposed.assignment) return proposed;
    // What a queued trial waits for stays told.
    std::string obstacle = std::move(queued[study].obstacle);
    absl::StrAppend(&obstacle, obstacle.empty() || proposed.obstacle.empty() ? "" : "; ",
                    proposed.obstacle);
    const bool may_pass = queued[study].may_pass || proposed.may_pass;
    WorkerObstacle told{.text = obstacle};
    if (!may_pass) told.blocked_at = generation;
    study->obstacles.Set(worker, std::move(told));
    offer.may_pass = offer.may_pass || may_pass;
    if (!obstacle.empty()) offer.obstacle = OfStudy(study->name(), obstacle);
  }
  if (offer.obstacle.empty() && !able.empty()) offer.handed_out = able.front();
  return offer;
}

void TrialDispatcher::DropStale(const Asker& asker, const std::vector<StudyRuntime*>& able) {
  const std::optional<HeldProposal> held = desk_.Of(asker.facts.worker);
  if (!held.has_value()) return;
  const auto can_give = [&](const StudyRuntime* study) {
    if (study->id() != held->study_id) return false;
    if (!held->queued.has_value()) return study->standing().budget_left;
    const std::vector<QueuedTrial> queue = study->open.queue();
    return std::any_of(queue.begin(), queue.end(), [&](const QueuedTrial& queued) {
      return queued.trial.id.number == *held->queued;
    });
  };
  if (std::none_of(able.begin(), able.end(), can_give)) desk_.Drop(asker.facts.worker);
}

PreflightStep TrialDispatcher::StepForQueued(StudyRuntime& study, const Asker& asker,
                                             const Trial& trial, const Placement& placement) {
  const std::string& worker = asker.facts.worker;
  const bool sure = placement.sure || !trial.admission;
  const std::optional<HeldProposal> held = desk_.Of(worker);
  if (held.has_value() && held->study_id == study.id() && held->queued == trial.id.number) {
    const HeldSituation situation{.answered = held->answered,
                                  .held_for = state_.clock.Monotonic() - held->since,
                                  .sure = sure,
                                  .may_dry_run = MayDryRun(study, study.spec(), asker.facts)};
    const PreflightStep step = StepForHeld(situation);
    if (step == PreflightStep::kWait) return step;
    if (IsOverdue(situation)) study.dry_runs.Ended(worker, /*failed=*/true);
    desk_.Drop(worker);
    return step;
  }
  const PreflightStep step = StepFor(sure, held.has_value());
  if (step == PreflightStep::kHold) {
    desk_.Hold(worker, {.study_id = study.id(),
                        .study = study.name(),
                        .params = trial.params,
                        .queued = trial.id.number,
                        .since = state_.clock.Monotonic()});
  }
  return step;
}

absl::StatusOr<Offer> TrialDispatcher::TakeQueued(StudyRuntime& study, const Asker& asker) {
  if (!study.standing().hands_out) return Offer{};
  const StudySpec spec = study.spec();
  std::vector<QueuedTrial> queue = study.open.queue();
  if (queue.empty()) return Offer{};
  WaitingTrials waiting(state_, study, spec, asker.facts, std::move(queue));
  for (;;) {
    HPO_ASSIGN_OR_RETURN(WaitingTrials::Choice choice, waiting.Choose());
    if (!choice.trial) {
      return Offer{
          .assignment = {}, .obstacle = std::move(choice.obstacle), .may_pass = choice.may_pass};
    }
    if (StepForQueued(study, asker, *choice.trial, choice.placement) != PreflightStep::kGive) {
      return Offer{.assignment = {}, .obstacle = kDryRunFirst, .may_pass = true};
    }
    const TrialNumber number = choice.trial->id.number;
    AttemptRecord attempt;
    const auto claim = [&](TrialTransaction& transaction) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
      if (record.trial.state != TrialState::kQueued) {
        return absl::AbortedError("another worker took the trial");
      }
      HPO_ASSIGN_OR_RETURN(attempt,
                           granter_.Start(transaction, study, asker, record, choice.placement));
      return absl::OkStatus();
    };
    const absl::Status claimed = state_.writer.Write(study, claim);
    if (absl::IsAborted(claimed) || study.QuarantineIfUnreadable(number, claimed)) {
      waiting.Remove(number);
      continue;
    }
    HPO_RETURN_IF_ERROR(claimed);
    granter_.Started(study, asker.facts);
    desk_.news().Raise();
    return Offer{.assignment = MakeAssignment(spec, *choice.trial, attempt)};
  }
}

}  // namespace hpo::server
