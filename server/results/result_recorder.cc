// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/results/result_recorder.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/protocol/worker_exchange_fields.h"
#include "memory/plan/fit_decision.h"
#include "nlohmann/json.hpp"
#include "server/leases/attempt_end.h"
#include "server/leases/retry_policy.h"
#include "server/placement/attempt_residual.h"
#include "server/storage/row_codec.h"
#include "server/trials/lease_token.h"
#include "server/trials/outcome_value.h"

namespace hpo::server {
namespace {

constexpr absl::string_view kFinishTrial = "FinishTrial";
constexpr absl::string_view kReleaseTrial = "ReleaseTrial";

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

absl::StatusOr<FinishResult> AnswerFromText(const std::string& text) {
  absl::StatusOr<FinishResult> result = FromText<FinishResult>(text, "response");
  if (result.ok()) return result;
  return absl::InternalError("the recorded answer of FinishTrial cannot be read");
}

absl::StatusOr<AttemptRecord> LoadProved(const AttemptStore& attempts, const LeaseRef& lease) {
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                       attempts.LoadAttempt(lease.trial.number, lease.attempt));
  if (attempt.token_hash == HashOfToken(lease.token)) return attempt;
  return absl::AbortedError(absl::StrCat("trial ", lease.trial.study, " #",
                                         lease.trial.number.value,
                                         ": the lease token is not that "
                                         "of attempt ",
                                         lease.attempt.value));
}

bool EndedByOom(const FinishRequest& request) {
  const auto* oom = std::get_if<OutOfMemory>(&request.outcome);
  return oom != nullptr && !oom->predicted;
}

bool MetOom(const FinishRequest& request) {
  return request.memory.num_ooms > 0 || EndedByOom(request);
}

// Of an attempt that has `stored` of them, the first for which it has room.
std::vector<Measurement> WithinLimit(std::vector<Measurement> measurements, int64_t stored) {
  const auto room = static_cast<size_t>(std::max<int64_t>(0, kMeasurementLimit.most - stored));
  if (measurements.size() > room) measurements.resize(room);
  return measurements;
}

// What the attempt had measured and not yet reported; what is beyond the limit is left out, as the
// result itself matters more. Returns those that were stored.
absl::StatusOr<std::vector<Measurement>> InsertLast(AttemptStore& attempts,
                                                    const FinishRequest& request) {
  if (request.measurements.empty()) return std::vector<Measurement>();
  const TrialNumber number = request.lease.trial.number;
  HPO_ASSIGN_OR_RETURN(const int64_t stored,
                       attempts.CountMeasurements(number, request.lease.attempt));
  return attempts.InsertMeasurements(number, request.lease.attempt,
                                     WithinLimit(request.measurements, stored));
}

absl::Status RecordAttributes(AttributeStore& attributes, TrialNumber trial,
                              const Attributes& told) {
  if (told.empty()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const Attributes stored, attributes.Load(trial));
  return attributes.Replace(trial, WithWhatFits(stored, told));
}

// A worker that was stopped by a heartbeat's answer does not know by whom.
void NamePruner(const StudyRuntime& study, FinishRequest& request) {
  const std::optional<HeldLease> held = study.open.FindLease(request.lease.trial.number);
  auto* const stopped = std::get_if<StoppedByPruner>(&request.outcome);
  const bool asked = held && held->attempt == request.lease.attempt && held->stop;
  if (stopped != nullptr && asked) stopped->pruner = held->stop->pruner;
}

absl::Status Superseded(const LeaseRef& lease) {
  return absl::AbortedError(absl::StrCat("trial ", lease.trial.study, " #",
                                         lease.trial.number.value, ": attempt ",
                                         lease.attempt.value, " no longer holds the lease"));
}

// The attempt, where the report's lease proves that it is the caller's and still holds the trial; a
// part of a result may come later.
absl::StatusOr<AttemptRecord> LoadReporter(const AttemptStore& attempts,
                                           const AttemptReport& report) {
  const LeaseRef& lease = report.lease;
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                       attempts.LoadAttempt(lease.trial.number, lease.attempt));
  const bool may_report = report.of_result || attempt.HoldsLease();
  const bool proved = attempt.token_hash == HashOfToken(lease.token);
  if (!proved || !may_report) return Superseded(lease);
  return attempt;
}

// The measurements that the attempt has room for; of a result the rest is left out, as the result
// itself matters more.
//   InvalidArgument  a running attempt has more of them than it may
absl::StatusOr<std::vector<Measurement>> TakeWhatFits(const AttemptStore& attempts,
                                                      const AttemptReport& report) {
  if (report.measurements.empty()) return std::vector<Measurement>();
  HPO_ASSIGN_OR_RETURN(const int64_t stored,
                       attempts.CountMeasurements(report.lease.trial.number, report.lease.attempt));
  std::vector<Measurement> taken = WithinLimit(report.measurements, stored);
  if (report.of_result || taken.size() == report.measurements.size()) return taken;
  return absl::InvalidArgumentError(absl::StrCat("measurements: expected at most ",
                                                 kMeasurementLimit.most, " of an attempt, got ",
                                                 stored + std::ssize(report.measurements)));
}

absl::Status TakeAttributes(TrialTransaction& transaction, TrialNumber trial,
                            const Attributes& told) {
  if (told.empty()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(Attributes attributes, transaction.attributes.Load(trial));
  HPO_ASSIGN_OR_RETURN(attributes, Changed(std::move(attributes), {.note = {}, .set = told}));
  transaction.Noted(trial);
  return transaction.attributes.Replace(trial, attributes);
}

// The result of an attempt that counts: ends it, and supersedes a newer one.
absl::Status RecordResult(TrialTransaction& transaction, const StudySpec& spec,
                          const FinishRequest& request, const Verdict& verdict, TrialRecord& record,
                          AttemptRecord& attempt) {
  const bool newer_runs = record.trial.state == TrialState::kRunning &&
                          record.current_attempt != attempt.attempt.number;
  if (newer_runs) {
    HPO_ASSIGN_OR_RETURN(AttemptRecord newer, transaction.attempts.LoadAttempt(
                                                  record.trial.id.number, record.current_attempt));
    newer.attempt.state = AttemptState::kSuperseded;
    newer.attempt.end_note =
        absl::StrCat("the late result of attempt ", attempt.attempt.number.value, " was taken");
    newer.attempt.ended = transaction.now;
    HPO_RETURN_IF_ERROR(transaction.attempts.UpdateAttempt(newer));
  }
  record.oom_met = record.oom_met || MetOom(request);
  if (!verdict.end && verdict.min_capacity.count > 0) record.last_oom = request.outcome;
  const AttemptState ended = verdict.end ? AttemptState::kFinished : AttemptState::kReleased;
  return EndAttempt(transaction, spec, AttemptEnding{ended, verdict}, record, attempt);
}

// Stores what the report says of the attempt's plan and its OOMs, where that is new.
absl::Status RecordMemory(TrialTransaction& transaction, const AttemptReport& report,
                          AttemptRecord& attempt) {
  const TrialNumber number = report.lease.trial.number;
  const int64_t known_ooms = attempt.attempt.memory ? attempt.attempt.memory->num_ooms : 0;
  const bool replanned = report.new_plan && report.new_plan != attempt.attempt.final_plan;
  if (!replanned && report.num_ooms <= known_ooms) return absl::OkStatus();
  if (replanned) attempt.attempt.final_plan = report.new_plan;
  if (report.num_ooms > known_ooms) {
    attempt.attempt.memory = attempt.attempt.memory.value_or(MemoryReport{});
    attempt.attempt.memory->num_ooms = report.num_ooms;
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
    record.oom_met = true;
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
  }
  HPO_RETURN_IF_ERROR(transaction.attempts.UpdateAttempt(attempt));
  transaction.Changed(number, replanned ? "replanned" : "oom_met");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReportResult> ResultRecorder::ReportMeasurements(const AttemptReport& report) {
  const LeaseRef& lease = report.lease;
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(lease.trial.study));
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, LoadReporter(transaction.attempts, report));
    HPO_ASSIGN_OR_RETURN(std::vector<Measurement> taken,
                         TakeWhatFits(transaction.attempts, report));
    HPO_ASSIGN_OR_RETURN(std::vector<Measurement> stored,
                         transaction.attempts.InsertMeasurements(lease.trial.number, lease.attempt,
                                                                 std::move(taken)));
    HPO_RETURN_IF_ERROR(transaction.attempts.InsertMemoryRecords(lease.trial.number, lease.attempt,
                                                                 report.memory_records));
    HPO_RETURN_IF_ERROR(TakeAttributes(transaction, lease.trial.number, report.attributes));
    if (!stored.empty()) {
      transaction.Measured(lease.trial.number, lease.attempt, std::move(stored));
    }
    return RecordMemory(transaction, report, attempt);
  };
  const absl::Status written = state_.writer.Write(*study, work);
  study->QuarantineIfUnreadable(lease.trial.number, written);
  HPO_RETURN_IF_ERROR(written);
  if (report.of_result) return ReportResult{};
  const std::optional<sampler::PruneDecision> stop = study->DecidePruning(lease.trial.number);
  // A report proves life as a heartbeat does, and is told the same.
  HPO_ASSIGN_OR_RETURN(const Directive directive, leases_.Renew(lease));
  if (!stop) return ReportResult{.directive = directive};
  return ReportResult{
      .should_stop = true, .pruner = stop->pruner, .why = stop->why, .directive = directive};
}

absl::StatusOr<FinishResult> ResultRecorder::FinishTrial(const std::string& request_id,
                                                         const FinishRequest& told) {
  const TrialNumber number = told.lease.trial.number;
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(told.lease.trial.study));
  const std::string body = BodyOf(told);
  FinishRequest request = told;
  NamePruner(*study, request);
  const absl::StatusOr<MemoryVerdict> judged = JudgeMemory(*study, request);
  study->QuarantineIfUnreadable(number, judged.status());
  HPO_RETURN_IF_ERROR(judged.status());
  // After the estimate was judged: what the attempt used, it used all the same.
  request.outcome = CheckedOutcome(study->spec(), request.outcome);
  FinishResult result;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.answers.Find(request_id, kFinishTrial, body));
    if (answer) {
      HPO_ASSIGN_OR_RETURN(result, AnswerFromText(*answer));
      return absl::OkStatus();
    }
    HPO_ASSIGN_OR_RETURN(result, Finish(transaction, *study, request, *judged));
    return transaction.answers.Record(request_id, kFinishTrial, body, JsonText(ToJson(result)),
                                      transaction.now);
  };
  const absl::Status written = state_.writer.Write(*study, work);
  study->QuarantineIfUnreadable(number, written);
  HPO_RETURN_IF_ERROR(written);
  return result;
}

// Estimates and fits before the transaction, which other writers wait for.
absl::StatusOr<ResultRecorder::MemoryVerdict> ResultRecorder::JudgeMemory(
    const StudyRuntime& study, const FinishRequest& request) const {
  const StudySpec spec = study.spec();
  MemoryVerdict verdict;
  const auto judge = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const AttemptRecord attempt, LoadProved(rows.attempts, request.lease));
    const std::optional<RegisteredWorker> worker = state_.workers.Find(attempt.attempt.worker);
    if (!worker || worker->facts.instance_key != attempt.instance_key) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const TrialRecord record,
                         rows.trials.LoadTrial(request.lease.trial.number));
    verdict.residual =
        ResidualOf(spec, worker->facts, record.trial.params, attempt, request, state_.replays);
    // Else the error rules nothing out: the trainer has planned smaller, or the policy is off.
    if (EndedByOom(request) && memory::GoesByLearnedNeed(spec.memory, worker->facts)) {
      verdict.oom_explained =
          ParametersExplainOom(spec, study.history(), record.trial.params, attempt.limit);
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*state_.store, study, judge));
  return verdict;
}

absl::StatusOr<FinishResult> ResultRecorder::Finish(TrialTransaction& transaction,
                                                    const StudyRuntime& study,
                                                    const FinishRequest& request,
                                                    const MemoryVerdict& judged) const {
  const TrialNumber number = request.lease.trial.number;
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, LoadProved(transaction.attempts, request.lease));
  HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
  const StudySpec spec = study.spec();
  HPO_ASSIGN_OR_RETURN(std::vector<Measurement> measured,
                       InsertLast(transaction.attempts, request));
  HPO_RETURN_IF_ERROR(transaction.attempts.InsertMemoryRecords(number, request.lease.attempt,
                                                               request.memory_records));
  HPO_RETURN_IF_ERROR(StoreLogTail(transaction, study.open, attempt, request.log_tail));
  const bool first_outcome = !attempt.outcome.has_value();
  if (first_outcome) {
    attempt.outcome = request.outcome;
    attempt.attempt.memory = request.memory;
    attempt.attempt.final_plan = request.final_plan;
    if (judged.residual) HPO_RETURN_IF_ERROR(transaction.Teach(study.id(), *judged.residual));
  }
  const Verdict verdict =
      AfterOutcome(request.outcome, record.retries,
                   {.limit = attempt.limit,
                    .largest = state_.workers.LargestUsable(spec, record.trial.params),
                    .explained = judged.oom_explained});
  // A late result wins while the trial is open; a late failure that would be retried does not
  // disturb the attempt that is retrying it.
  const bool counts = first_outcome && record.IsOpen() && (attempt.HoldsLease() || verdict.end);
  if (counts) {
    HPO_RETURN_IF_ERROR(RecordAttributes(transaction.attributes, number, request.attributes));
    HPO_RETURN_IF_ERROR(RecordResult(transaction, spec, request, verdict, record, attempt));
  } else {
    HPO_RETURN_IF_ERROR(transaction.attempts.UpdateAttempt(attempt));
    // History holds them, whatever becomes of the outcome.
    if (!measured.empty()) {
      transaction.Measured(number, request.lease.attempt, std::move(measured));
    }
  }
  return FinishResult{.state = record.trial.state, .stored = counts};
}

absl::StatusOr<TrialState> ResultRecorder::ReleaseTrial(const std::string& request_id,
                                                        const TrialRelease& release) {
  const LeaseRef& lease = release.lease;
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(lease.trial.study));
  const std::string body = BodyOf(lease, release.reason);
  TrialState state = TrialState::kQueued;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.answers.Find(request_id, kReleaseTrial, body));
    if (answer) {
      HPO_ASSIGN_OR_RETURN(state, EnumFromText<TrialState>(*answer));
      return absl::OkStatus();
    }
    HPO_ASSIGN_OR_RETURN(state, Release(transaction, *study, release));
    return transaction.answers.Record(request_id, kReleaseTrial, body, Name(state),
                                      transaction.now);
  };
  const absl::Status written = state_.writer.Write(*study, work);
  study->QuarantineIfUnreadable(lease.trial.number, written);
  HPO_RETURN_IF_ERROR(written);
  return state;
}

absl::StatusOr<TrialState> ResultRecorder::Release(TrialTransaction& transaction,
                                                   const StudyRuntime& study,
                                                   const TrialRelease& release) const {
  const LeaseRef& lease = release.lease;
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt, LoadProved(transaction.attempts, lease));
  HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(lease.trial.number));
  if (!attempt.HoldsLease()) return Superseded(lease);
  Verdict verdict =
      AfterRelease(release.reason, release.needed, release.note, record.retries,
                   {.limit = attempt.limit,
                    .largest = state_.workers.LargestUsable(study.spec(), record.trial.params)});
  if (!release.note.empty()) absl::StrAppend(&verdict.note, ": ", release.note);
  if (!verdict.end && verdict.min_capacity.count > 0) {
    record.last_oom = OutOfMemory{.predicted = true,
                                  .limit = attempt.limit,
                                  .needed = release.needed,
                                  .plan = attempt.attempt.plan,
                                  .message = verdict.note};
  }
  HPO_RETURN_IF_ERROR(StoreLogTail(transaction, study.open, attempt, release.log_tail));
  HPO_RETURN_IF_ERROR(EndAttempt(transaction, study.spec(),
                                 AttemptEnding{AttemptState::kReleased, verdict}, record, attempt));
  return record.trial.state;
}

}  // namespace hpo::server
