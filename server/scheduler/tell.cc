// TrialScheduler: attempts end.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/placement/attempt_residual.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/storage/row_codec.h"
#include "server/studies/lease_token.h"
#include "server/studies/outcome_value.h"

namespace hpo {
namespace {

nlohmann::json LeaseJson(const LeaseRef& lease) {
  return {{"study", lease.trial.study},
          {"trial", lease.trial.number.value},
          {"attempt", lease.attempt.value},
          {"token", lease.token}};
}

std::string BodyOf(const FinishRequest& request) {
  return JsonText(
      {{"lease", LeaseJson(request.lease)}, {"outcome", OutcomeToJson(request.outcome)}});
}

std::string BodyOf(const LeaseRef& lease, ReleaseReason reason) {
  return JsonText({{"lease", LeaseJson(lease)}, {"reason", std::string(Name(reason))}});
}

std::string AnswerText(const FinishResult& result) {
  return JsonText({{"state", std::string(Name(result.state))}, {"stored", result.stored}});
}

absl::StatusOr<FinishResult> AnswerFromText(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool whole = json.is_object() && json.contains("state") && json["state"].is_string() &&
                     json.contains("stored") && json["stored"].is_boolean();
  if (!whole) return absl::InternalError("the recorded answer of FinishTrial cannot be read");
  FinishResult result{.stored = json["stored"].get<bool>()};
  HPO_ASSIGN_OR_RETURN(result.state, EnumFromText<TrialState>(json["state"].get<std::string>()));
  return result;
}

absl::StatusOr<AttemptRecord> LoadProved(const TrialStore& trials, const LeaseRef& lease) {
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                       trials.LoadAttempt(lease.trial.number, lease.attempt));
  if (attempt.token_hash == HashOfToken(lease.token)) return attempt;
  return absl::AbortedError(absl::StrCat("trial ", lease.trial.study, " #",
                                         lease.trial.number.value,
                                         ": the lease token is not that "
                                         "of attempt ",
                                         lease.attempt.value));
}

bool MetOom(const FinishRequest& request) {
  const auto* oom = std::get_if<OutOfMemory>(&request.outcome);
  return request.memory.num_ooms > 0 || (oom != nullptr && !oom->predicted);
}

// What the attempt had measured and not yet reported; what is beyond the limit is left out, as the
// result itself matters more. Returns how many were stored.
absl::StatusOr<int64_t> InsertLast(TrialStore& trials, const FinishRequest& request) {
  if (request.measurements.empty()) return 0;
  const TrialNumber number = request.lease.trial.number;
  HPO_ASSIGN_OR_RETURN(const int64_t stored,
                       trials.CountMeasurements(number, request.lease.attempt));
  const auto room = static_cast<size_t>(std::max<int64_t>(0, kMeasurementLimit.most - stored));
  std::vector<Measurement> last = request.measurements;
  if (last.size() > room) last.resize(room);
  return trials.InsertMeasurements(number, request.lease.attempt, last);
}

absl::Status RecordAttributes(TrialStore& trials, TrialNumber trial, const Attributes& told) {
  if (told.empty()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const Attributes attributes, trials.LoadAttributes(trial));
  return trials.StoreAttributes(trial, WithWhatFits(attributes, told));
}

// A worker that was stopped by a heartbeat's answer does not know by whom.
void NamePruner(const StudyRuntime& study, FinishRequest& request) {
  const std::optional<HeldLease> held = study.FindLease(request.lease.trial.number);
  auto* const stopped = std::get_if<StoppedByPruner>(&request.outcome);
  const bool asked = held && held->attempt == request.lease.attempt && held->stop;
  if (stopped != nullptr && asked) stopped->pruner = held->stop->pruner;
}

// A trial that people stopped does not run again, however its attempt ended.
Verdict AsOrdered(Verdict verdict, const AttemptRecord& attempt) {
  if (!attempt.stop_order) return verdict;
  if (!verdict.end || std::holds_alternative<Cancelled>(*verdict.end)) {
    verdict.end = Cancelled{.reason = *attempt.stop_order};
  }
  return verdict;
}

}  // namespace

std::optional<Bytes> TrialScheduler::LargestUsable(const StudySpec& spec,
                                                   const Trial& trial) const {
  return workers_.LargestUsable(spec, trial.params);
}

absl::StatusOr<FinishResult> TrialScheduler::Finish(const std::string& request_id,
                                                    const FinishRequest& told) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(told.lease.trial.study));
  const std::string body = BodyOf(told);
  FinishRequest request = told;
  NamePruner(*study, request);
  const absl::StatusOr<std::optional<ResidualRecord>> residual = JudgeEstimate(*study, request);
  Quarantined(*study, told.lease.trial.number, residual.status());
  HPO_RETURN_IF_ERROR(residual.status());
  // After the estimate was judged: what the attempt used, it used all the same.
  request.outcome = CheckedOutcome(study->spec(), request.outcome);
  FinishResult result;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.studies.FindAnswer(request_id, "FinishTrial", body));
    if (answer) {
      HPO_ASSIGN_OR_RETURN(result, AnswerFromText(*answer));
      return absl::OkStatus();
    }
    HPO_RETURN_IF_ERROR(FinishIn(transaction, *study, request, *residual, result));
    return transaction.studies.RecordAnswer(request_id, "FinishTrial", body, AnswerText(result),
                                            transaction.now);
  };
  const absl::Status written = writer_.Write(*study, work);
  Quarantined(*study, told.lease.trial.number, written);
  HPO_RETURN_IF_ERROR(written);
  return result;
}

// Estimates before the transaction, which other writers wait for.
absl::StatusOr<std::optional<ResidualRecord>> TrialScheduler::JudgeEstimate(
    const StudyRuntime& study, const FinishRequest& request) const {
  std::optional<ResidualRecord> residual;
  const auto judge = [&](const TrialStore& trials) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const AttemptRecord attempt, LoadProved(trials, request.lease));
    const std::optional<RegisteredWorker> worker = workers_.Find(attempt.attempt.worker);
    if (!worker || worker->facts.instance_key != attempt.instance_key) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const TrialRecord record, trials.LoadTrial(request.lease.trial.number));
    residual =
        ResidualOf(study.spec(), worker->facts, record.trial.params, attempt, request, replays_);
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadTrials(study, judge));
  return residual;
}

absl::Status TrialScheduler::FinishIn(TrialTransaction& transaction, StudyRuntime& study,
                                      const FinishRequest& request,
                                      const std::optional<ResidualRecord>& residual,
                                      FinishResult& result) {
  const TrialNumber number = request.lease.trial.number;
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, LoadProved(transaction.trials, request.lease));
  HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
  const StudySpec spec = study.spec();
  HPO_ASSIGN_OR_RETURN(const int64_t measured, InsertLast(transaction.trials, request));
  HPO_RETURN_IF_ERROR(transaction.trials.InsertMemoryRecords(number, request.lease.attempt,
                                                             request.memory_records));
  const bool first_outcome = !attempt.outcome.has_value();
  if (first_outcome) {
    attempt.outcome = request.outcome;
    attempt.attempt.memory = request.memory;
    attempt.attempt.final_plan = request.final_plan;
    if (residual) HPO_RETURN_IF_ERROR(transaction.Teach(study.id(), *residual));
  }
  const Verdict verdict = AfterOutcome(request.outcome, record.retries, attempt.limit,
                                       LargestUsable(spec, record.trial));
  // A late result wins while the trial is open; a late failure that would be retried does not
  // disturb the attempt that is retrying it.
  const bool counts = first_outcome && record.IsOpen() && (attempt.HoldsLease() || verdict.end);
  if (counts) {
    HPO_RETURN_IF_ERROR(RecordAttributes(transaction.trials, number, request.attributes));
    HPO_RETURN_IF_ERROR(RecordResult(transaction, spec, request, verdict, record, attempt));
  } else {
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateAttempt(attempt));
    // History holds them, whatever becomes of the outcome.
    if (measured > 0) transaction.Changed(number, "measured");
  }
  result = FinishResult{.state = record.trial.state, .stored = counts};
  return absl::OkStatus();
}

absl::Status TrialScheduler::RecordResult(TrialTransaction& transaction, const StudySpec& spec,
                                          const FinishRequest& request, const Verdict& verdict,
                                          TrialRecord& record, AttemptRecord& attempt) {
  const bool newer_runs = record.trial.state == TrialState::kRunning &&
                          record.current_attempt != attempt.attempt.number;
  if (newer_runs) {
    HPO_ASSIGN_OR_RETURN(AttemptRecord newer, transaction.trials.LoadAttempt(
                                                  record.trial.id.number, record.current_attempt));
    newer.attempt.state = AttemptState::kSuperseded;
    newer.attempt.end_note =
        absl::StrCat("the late result of attempt ", attempt.attempt.number.value, " was taken");
    newer.attempt.ended = transaction.now;
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateAttempt(newer));
  }
  record.oom_met = record.oom_met || MetOom(request);
  if (!verdict.end && verdict.min_capacity.count > 0) record.last_oom = request.outcome;
  const AttemptState ended = verdict.end ? AttemptState::kFinished : AttemptState::kReleased;
  return EndAttempt(transaction, spec, Ending{ended, verdict}, record, attempt);
}

absl::Status TrialScheduler::EndAttempt(TrialTransaction& transaction, const StudySpec& spec,
                                        const Ending& ending, TrialRecord& record,
                                        AttemptRecord& attempt) {
  const Verdict verdict = AsOrdered(ending.verdict, attempt);
  attempt.attempt.state = ending.attempt_state;
  attempt.attempt.end_note = verdict.note;
  attempt.attempt.ended = transaction.now;
  HPO_RETURN_IF_ERROR(transaction.trials.UpdateAttempt(attempt));
  Trial& trial = record.trial;
  record.retries = verdict.counts;
  if (verdict.end) {
    SetOutcome(spec, *verdict.end, trial);
    trial.ended = transaction.now;
    record.result_attempt = attempt.attempt.number;
  } else {
    trial.state = TrialState::kQueued;
    trial.min_capacity = std::max(trial.min_capacity, verdict.min_capacity);
  }
  HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
  transaction.Changed(trial.id.number, verdict.end ? "finished" : "requeued");
  return absl::OkStatus();
}

absl::StatusOr<TrialState> TrialScheduler::Release(const std::string& request_id,
                                                   const LeaseRef& lease, ReleaseReason reason,
                                                   Bytes needed, const std::string& note) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(lease.trial.study));
  const std::string body = BodyOf(lease, reason);
  TrialState state = TrialState::kQueued;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.studies.FindAnswer(request_id, "ReleaseTrial", body));
    if (answer) {
      HPO_ASSIGN_OR_RETURN(state, EnumFromText<TrialState>(*answer));
      return absl::OkStatus();
    }
    HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, LoadProved(transaction.trials, lease));
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(lease.trial.number));
    if (!attempt.HoldsLease()) {
      return absl::AbortedError(absl::StrCat("trial ", lease.trial.study, " #",
                                             lease.trial.number.value, ": attempt ",
                                             lease.attempt.value, " no longer holds the lease"));
    }
    const StudySpec spec = study->spec();
    Verdict verdict = AfterRelease(reason, needed, note, record.retries, attempt.limit,
                                   LargestUsable(spec, record.trial));
    if (!note.empty()) absl::StrAppend(&verdict.note, ": ", note);
    if (!verdict.end && verdict.min_capacity.count > 0) {
      record.last_oom = OutOfMemory{.predicted = true,
                                    .limit = attempt.limit,
                                    .needed = needed,
                                    .plan = attempt.attempt.plan,
                                    .message = verdict.note};
    }
    HPO_RETURN_IF_ERROR(
        EndAttempt(transaction, spec, Ending{AttemptState::kReleased, verdict}, record, attempt));
    state = record.trial.state;
    return transaction.studies.RecordAnswer(request_id, "ReleaseTrial", body, Name(state),
                                            transaction.now);
  };
  const absl::Status written = writer_.Write(*study, work);
  Quarantined(*study, lease.trial.number, written);
  HPO_RETURN_IF_ERROR(written);
  return state;
}

absl::Status TrialScheduler::LoseLease(StudyRuntime& study, const HeldLease& lease, LeaseLoss why) {
  return writer_.Write(study, [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                         transaction.trials.LoadAttempt(lease.trial, lease.attempt));
    // A result or a beat may have come first.
    const std::optional<HeldLease> held = study.FindLease(lease.trial);
    const bool renewed = !held || held->renewed_at != lease.renewed_at;
    if (renewed || !attempt.HoldsLease()) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(lease.trial));
    if (why == LeaseLoss::kNameTaken || why == LeaseLoss::kNeverTaken) {
      const Verdict never_taken{.counts = record.retries, .note = "the worker left without it"};
      const Ending ending{AttemptState::kReleased, why == LeaseLoss::kNameTaken
                                                       ? AfterTakeover(record.retries)
                                                       : never_taken};
      return EndAttempt(transaction, study.spec(), ending, record, attempt);
    }
    HPO_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> attempts,
                         transaction.trials.LoadAttempts(lease.trial));
    std::set<std::string> killed = {lease.worker};
    for (const AttemptRecord& earlier : attempts) {
      if (earlier.attempt.state == AttemptState::kLost) killed.insert(earlier.attempt.worker);
    }
    Verdict verdict = AfterWorkerLoss(record.retries, static_cast<int64_t>(killed.size()));
    verdict.note = absl::StrCat(
        why == LeaseLoss::kRestarted ? "worker restarted: " : "no sign of life: ", verdict.note);
    return EndAttempt(transaction, study.spec(), Ending{AttemptState::kLost, verdict}, record,
                      attempt);
  });
}

absl::Status TrialScheduler::EndLease(StudyRuntime& study, const HeldLease& lease, LeaseLoss why) {
  const absl::Status ended = LoseLease(study, lease, why);
  return Quarantined(study, lease.trial, ended) ? absl::OkStatus() : ended;
}

}  // namespace hpo
