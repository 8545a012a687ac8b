// TrialScheduler: a worker asks for a trial.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "common/memory/plan/fit_decision.h"
#include "nlohmann/json.hpp"
#include "sampler/space/narrow_for_capacity.h"
#include "server/scheduler/lease_token.h"
#include "server/scheduler/placement/capability.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(50);
// How often a waiting call looks whether its caller is still there.
constexpr absl::Duration kCancellationCheck = absl::Milliseconds(100);
// With nothing left to do anywhere, a worker that asks again at once is slowed to this.
constexpr absl::Duration kFinishedWait = absl::Seconds(1);

constexpr absl::string_view kMethod = "AcquireTrial";

// An Aborted status from a claim means that another worker was faster.
bool TakenByAnother(const absl::Status& status) { return absl::IsAborted(status); }

absl::Status CheckOffer(const StudyRuntime& study, const WorkerFacts& facts) {
  const absl::Status serves =
      Annotate(CheckServes(study.spec(), facts), absl::StrCat("study ", study.name()));
  return serves.ok() ? CheckDigests(study.name(), study.data_digests(), facts) : serves;
}

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

}  // namespace

AcquireResult TrialScheduler::EmptyAnswer(const WorkerFacts& facts) const {
  std::vector<StudyRuntime*> studies = Studies();
  std::erase_if(studies,
                [&](const StudyRuntime* study) { return !CheckTold(study->name(), facts).ok(); });
  AcquireResult answer;
  answer.studies_version = studies_version();
  answer.draining = draining();
  answer.all_studies_finished =
      !studies.empty() && std::all_of(studies.begin(), studies.end(),
                                      [](const StudyRuntime* study) { return study->Finished(); });
  if (!answer.all_studies_finished) return answer;
  for (const StudyRuntime* study : studies) answer.finished.push_back(EndOf(*study));
  return answer;
}

Assignment TrialScheduler::Complete(Assignment assignment) const {
  assignment.lease.database = database_;
  assignment.lease_ttl = options_.lease.ttl;
  assignment.heartbeat_interval = HeartbeatInterval(options_.lease);
  return assignment;
}

absl::StatusOr<AcquireResult> TrialScheduler::Acquire(const std::string& session,
                                                      const std::string& request_id,
                                                      absl::Duration wait, Bytes capacity,
                                                      const std::function<bool()>& cancelled) {
  const absl::Duration asked = clock_.Monotonic();
  HPO_ASSIGN_OR_RETURN(const RegisteredWorker worker, workers_.Beat(session, capacity));
  const Asker asker{.facts = worker.facts, .request_id = request_id};
  absl::Duration longest = std::min(wait, kLongestWait);
  HPO_ASSIGN_OR_RETURN(std::optional<Assignment> assignment, Replay(asker));
  for (bool first = true;; first = false) {
    int64_t seen = 0;
    {
      absl::MutexLock lock(&mutex_);
      seen = generation_;
    }
    // A session that a newer process of the worker has replaced meanwhile gets nothing.
    HPO_RETURN_IF_ERROR(workers_.Touch(session, capacity).status());
    std::string waiting_for;
    if (!assignment && !draining()) {
      HPO_ASSIGN_OR_RETURN(assignment, TryAcquire(asker, waiting_for));
      if (assignment) HPO_RETURN_IF_ERROR(ReleaseUnlessThere(session, assignment->lease));
    }
    AcquireResult answer = EmptyAnswer(asker.facts);
    answer.waiting_for = std::move(waiting_for);
    if (assignment) answer.assignment = Complete(*std::move(assignment));
    if (answer.assignment || answer.draining) return answer;
    if (answer.all_studies_finished) {
      // News for a worker that was waiting; one that knows is slowed down.
      if (!first) return answer;
      longest = std::min(longest, kFinishedWait);
    }
    const auto changed = [this, seen]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return generation_ != seen; };
    for (bool woken = false; !woken;) {
      const absl::Duration left = longest - (clock_.Monotonic() - asked);
      if (left <= absl::ZeroDuration() || (cancelled && cancelled())) return answer;
      absl::MutexLock lock(&mutex_);
      woken = AwaitSteadily(mutex_, absl::Condition(&changed), std::min(left, kCancellationCheck));
    }
  }
}

// The worker may have left, or a newer process of its name may have come, while it was being
// served: a lease granted after that was seen by nobody who gives such back.
absl::Status TrialScheduler::ReleaseUnlessThere(const std::string& session, const LeaseRef& lease) {
  const absl::Status there = workers_.Touch(session, std::nullopt).status();
  if (there.ok()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(lease.trial.study));
  const std::optional<HeldLease> held = study->FindLease(lease.trial.number);
  if (held && held->attempt == lease.attempt) {
    HPO_RETURN_IF_ERROR(EndLease(*study, *held, LeaseLoss::kNeverTaken));
    WakeAll();
  }
  return there;
}

absl::StatusOr<std::optional<Assignment>> TrialScheduler::Replay(const Asker& asker) {
  std::optional<std::string> answer;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(
        answer, StudyStore(database).FindAnswer(asker.request_id, kMethod, asker.facts.worker));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_->Read(read));
  if (!answer) return std::nullopt;
  const nlohmann::json given = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  const bool whole = given.is_object() && given.contains("study") && given["study"].is_string() &&
                     given.contains("trial") && given["trial"].is_number_integer() &&
                     given.contains("attempt") && given["attempt"].is_number_integer();
  // An answer that cannot be read is none: this id asks anew.
  if (!whole) return std::nullopt;
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(given["study"]));
  const TrialNumber number{given["trial"].get<int64_t>()};
  const std::optional<HeldLease> lease = study->FindLease(number);
  // The lease is gone: this id asks anew.
  if (!lease || lease->attempt.value != given["attempt"]) return std::nullopt;
  TrialRecord record;
  AttemptRecord attempt;
  const auto load = [&](const TrialStore& trials) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(record, trials.LoadTrial(number));
    HPO_ASSIGN_OR_RETURN(attempt, trials.LoadAttempt(number, lease->attempt));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadTrials(*study, load));
  attempt.token = MakeLeaseToken(token_secret_, asker.request_id, record.trial.id, lease->attempt);
  // Made by a server before this one that did not make tokens so: this id asks anew.
  if (HashOfToken(attempt.token) != attempt.token_hash) return std::nullopt;
  const StudySpec spec = study->spec();
  WorkerFacts then = asker.facts;
  then.capacity = attempt.attempt.capacity;
  return MakeAssignment(spec, record.trial, attempt,
                        NarrowForCapacity(AskFor(spec, then, number, Knowledge(*study, then))));
}

absl::StatusOr<std::optional<Assignment>> TrialScheduler::TryAcquire(const Asker& asker,
                                                                     std::string& waiting_for) {
  std::vector<StudyRuntime*> able;
  for (StudyRuntime* study : Studies()) {
    if (study->Finished()) continue;
    const absl::Status serves = CheckOffer(*study, asker.facts);
    if (study->order() == StudyOrder::kPause && serves.ok()) {
      waiting_for = absl::StrCat("study ", study->name(), ": paused");
    } else if (serves.ok()) {
      able.push_back(study);
    } else {
      waiting_for = std::string(serves.message());
    }
  }
  for (StudyRuntime* study : able) {
    HPO_ASSIGN_OR_RETURN(std::optional<Assignment> assignment,
                         TakeQueued(*study, asker, waiting_for));
    if (assignment) return assignment;
  }
  // The study with the fewest running trials first, as they are now: others change them, and a sort
  // whose order changes under it reads outside of what it sorts.
  std::multimap<size_t, StudyRuntime*> by_running;
  for (StudyRuntime* study : able) by_running.emplace(study->leases().size(), study);
  for (const auto& [num_running, study] : by_running) {
    HPO_ASSIGN_OR_RETURN(std::optional<Assignment> assignment, Propose(*study, asker, waiting_for));
    if (assignment) return assignment;
  }
  if (waiting_for.empty() && !able.empty()) {
    waiting_for = absl::StrCat("study ", able.front()->name(),
                               ": what is left of its budget runs on other workers; what one of "
                               "them gives back is taken up");
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<Placement>> TrialScheduler::PlaceWaiting(
    StudyRuntime& study, const Trial& trial, const WorkerFacts& facts,
    const MemoryKnowledge& knowledge, std::string& obstacle) {
  const StudySpec spec = study.spec();
  const std::string name = absl::StrCat("trial #", trial.id.number.value);
  if (const absl::Status able = CheckCanRun(spec, facts, trial.params); !able.ok()) {
    obstacle = absl::StrCat(name, ": ", able.message());
    return std::nullopt;
  }
  const Placement placement = PlaceTrial(spec, facts, trial, knowledge);
  if (trial.min_capacity.count > 0 && placement.usable <= trial.min_capacity) {
    obstacle =
        absl::StrCat(name, " waits for a worker with more than ", FormatBytes(trial.min_capacity));
    return std::nullopt;
  }
  if (placement.fits || !trial.admission) return placement;
  WorkerFacts alone = facts;
  alone.capacity = CapacityAlone(facts);
  const bool shared = alone.capacity > facts.capacity;
  const Placement best = shared ? PlaceTrial(spec, alone, trial, knowledge) : placement;
  const std::optional<Bytes> largest = LargestUsable(spec, trial);
  if (best.fits) {
    obstacle = absl::StrCat(name, " ", placement.misfit, "; others hold ",
                            FormatBytes(alone.capacity - facts.capacity), " of the device");
  } else if (largest && best.usable < *largest) {
    obstacle = absl::StrCat(name, " ", placement.misfit);
  } else {
    HPO_RETURN_IF_ERROR(EndAsPredicted(study, trial, best));
  }
  return std::nullopt;
}

SmallerCards TrialScheduler::SmallerThan(const StudyRuntime& study, const StudySpec& spec,
                                         const WorkerFacts& facts) const {
  std::vector<WorkerFacts> serving;
  for (WorkerFacts& worker : workers_.Alive()) {
    if (CheckOffer(study, worker).ok()) serving.push_back(std::move(worker));
  }
  const Bytes usable = UsableBytes(QuantizeCapacity(facts.capacity), facts.device, spec.memory);
  return SmallerCards(spec, usable, serving,
                      [&](const WorkerFacts& worker) { return Knowledge(study, worker); });
}

absl::StatusOr<std::optional<TrialScheduler::Waiting>> TrialScheduler::ChooseWaiting(
    StudyRuntime& study, const std::vector<QueuedTrial>& queue, const SmallerCards& smaller,
    const WorkerFacts& facts, const MemoryKnowledge& knowledge) {
  std::string obstacle;
  std::optional<Waiting> best;
  std::optional<Bytes> best_least;
  for (const QueuedTrial& queued : queue) {
    const std::optional<Bytes> least = smaller.LeastUsableFor(queued.trial);
    if (best && least && *least <= *best_least) continue;
    HPO_ASSIGN_OR_RETURN(const std::optional<Placement> placement,
                         PlaceWaiting(study, queued.trial, facts, knowledge, obstacle));
    if (!placement) continue;
    best = Waiting{queued.trial, *placement};
    best_least = least;
    if (!least) break;
  }
  if (!best) study.set_obstacle(facts.worker, obstacle);
  return best;
}

absl::StatusOr<std::optional<Assignment>> TrialScheduler::TakeQueued(StudyRuntime& study,
                                                                     const Asker& asker,
                                                                     std::string& waiting_for) {
  study.set_obstacle(asker.facts.worker, "");
  if (!study.HandsOut()) return std::nullopt;
  const StudySpec spec = study.spec();
  std::vector<QueuedTrial> queue = study.queue();
  if (queue.empty()) return std::nullopt;
  const MemoryKnowledge knowledge = Knowledge(study, asker.facts);
  const SmallerCards smaller = SmallerThan(study, spec, asker.facts);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const std::optional<Waiting> waiting,
                         ChooseWaiting(study, queue, smaller, asker.facts, knowledge));
    if (!waiting) break;
    const TrialNumber number = waiting->trial.id.number;
    AttemptRecord attempt;
    const absl::Status claimed =
        writer_.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
          HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
          if (record.trial.state != TrialState::kQueued) {
            return absl::AbortedError("another worker took the trial");
          }
          HPO_ASSIGN_OR_RETURN(attempt,
                               Start(transaction, study, asker, record, waiting->placement));
          return absl::OkStatus();
        });
    if (TakenByAnother(claimed) || Quarantined(study, number, claimed)) {
      std::erase_if(queue,
                    [number](const QueuedTrial& lost) { return lost.trial.id.number == number; });
      continue;
    }
    HPO_RETURN_IF_ERROR(claimed);
    Started(study, spec, asker.facts);
    const AskContext context = AskFor(spec, asker.facts, number, knowledge);
    return MakeAssignment(spec, waiting->trial, attempt, NarrowForCapacity(context));
  }
  const std::string obstacle = study.obstacle(asker.facts.worker);
  if (!obstacle.empty()) waiting_for = absl::StrCat("study ", study.name(), ": ", obstacle);
  return std::nullopt;
}

absl::StatusOr<std::optional<Assignment>> TrialScheduler::Propose(StudyRuntime& study,
                                                                  const Asker& asker,
                                                                  std::string& waiting_for) {
  if (!study.BudgetLeft()) return std::nullopt;
  absl::ReleasableMutexLock lock(&study.propose_mutex());
  if (!study.BudgetLeft()) return std::nullopt;
  const StudySpec spec = study.spec();
  MemoryKnowledge knowledge;
  AskContext context;
  const absl::StatusOr<Suggestion> suggestion = study.Suggest([&](const History& seen) {
    knowledge = KnowledgeFor(spec, asker.facts, seen, calibration_.Snapshot(), replays_);
    context = AskFor(spec, asker.facts, study.next_number(), knowledge);
    return context;
  });
  if (!suggestion.ok()) {
    lock.Release();
    // What a queued trial waits for stays told.
    std::string obstacle = study.obstacle(asker.facts.worker);
    absl::StrAppend(&obstacle, obstacle.empty() ? "" : "; ", suggestion.status().message());
    const bool ends = !study.BudgetLeft();
    const std::string advice = ends ? "" : advisor_.Advise(spec, asker.facts, knowledge);
    if (!advice.empty()) absl::StrAppend(&obstacle, "; ", advice);
    study.set_obstacle(asker.facts.worker, obstacle);
    waiting_for = absl::StrCat("study ", study.name(), ": ", obstacle);
    return std::nullopt;
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
  HPO_RETURN_IF_ERROR(writer_.Write(study, work));
  Started(study, spec, asker.facts);
  return MakeAssignment(spec, record.trial, attempt, NarrowForCapacity(context));
}

void TrialScheduler::Started(StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts) {
  study.set_obstacle(facts.worker, "");
  for (const DataSetFacts& data : DataOf(spec, facts)) study.PinData(data.name, data.digest);
}

absl::StatusOr<AttemptRecord> TrialScheduler::Start(TrialTransaction& transaction,
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
  attempt.token = MakeLeaseToken(token_secret_, asker.request_id, trial.id, attempt.attempt.number);
  attempt.token_hash = HashOfToken(attempt.token);
  attempt.limit = placement.usable;
  attempt.required = placement.required;
  HPO_RETURN_IF_ERROR(transaction.trials.InsertAttempt(attempt));
  trial.state = TrialState::kRunning;
  if (trial.started == absl::InfinitePast()) trial.started = transaction.now;
  record.current_attempt = attempt.attempt.number;
  HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
  transaction.Changed(trial.id.number, "started");
  const nlohmann::json answer = {{"study", study.name()},
                                 {"trial", trial.id.number.value},
                                 {"attempt", attempt.attempt.number.value}};
  HPO_RETURN_IF_ERROR(transaction.studies.ForgetAnswer(asker.request_id, kMethod));
  HPO_RETURN_IF_ERROR(transaction.studies.RecordAnswer(
      asker.request_id, kMethod, asker.facts.worker, answer.dump(), transaction.now));
  return attempt;
}

absl::Status TrialScheduler::EndAsPredicted(StudyRuntime& study, const Trial& trial,
                                            const Placement& placement) {
  const absl::Status ended =
      writer_.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
        HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(trial.id.number));
        if (record.trial.state != TrialState::kQueued) {
          return absl::AbortedError("another worker took the trial");
        }
        record.trial.state = TrialState::kPruned;
        record.trial.outcome = OutOfMemory{.predicted = true,
                                           .limit = placement.usable,
                                           .needed = placement.required,
                                           .plan = placement.plan,
                                           .message = placement.misfit};
        record.trial.ended = transaction.now;
        HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
        transaction.Changed(trial.id.number, "finished");
        return absl::OkStatus();
      });
  const bool settled = TakenByAnother(ended) || Quarantined(study, trial.id.number, ended);
  return settled ? absl::OkStatus() : ended;
}

}  // namespace hpo
