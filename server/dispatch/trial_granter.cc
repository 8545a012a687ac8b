// Tested by tests/server/scheduler/trial_scheduler_test.cc.
#include "server/dispatch/trial_granter.h"

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "server/storage/answer_store.h"
#include "server/storage/row_codec.h"
#include "server/trials/lease_token.h"

namespace hpo::server {
namespace {

constexpr absl::string_view kAcquireTrial = "AcquireTrial";

std::vector<DataSetFacts> DataOf(const StudySpec& spec, const WorkerFacts& facts) {
  std::vector<DataSetFacts> used;
  for (const DataSetFacts& data : facts.data_sets) {
    const bool named = data.name == spec.trainer.train || data.name == spec.trainer.validation;
    if (named) used.push_back(data);
  }
  return used;
}

// A recorded answer.
struct GivenTrial {
  std::string study;
  TrialNumber trial;
  AttemptNumber attempt;
};

void VisitFields(Is<GivenTrial> auto& given, auto visit) {
  visit({"study"}, given.study);
  visit({"trial"}, given.trial.value);
  visit({"attempt"}, given.attempt.value);
}

}  // namespace

absl::StatusOr<std::optional<Assignment>> TrialGranter::Replay(const Asker& asker) {
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
  const absl::StatusOr<GivenTrial> given = FromText<GivenTrial>(*answer, "response");
  if (!given.ok()) return std::nullopt;
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

absl::StatusOr<AttemptRecord> TrialGranter::Start(TrialTransaction& transaction,
                                                  const StudyRuntime& study, const Asker& asker,
                                                  TrialRecord& record, const Placement& placement) {
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
  HPO_RETURN_IF_ERROR(transaction.answers.Record(asker.request_id, kAcquireTrial,
                                                 asker.facts.worker, JsonText(ToJson(given)),
                                                 transaction.now));
  return attempt;
}

void TrialGranter::Started(StudyRuntime& study, const WorkerFacts& facts) {
  study.obstacles.Clear(facts.worker);
  for (const DataSetFacts& data : DataOf(study.spec(), facts)) {
    study.PinData(data.name, data.digest);
  }
}

absl::Status TrialGranter::TakeBackUnlessThere(const std::string& session, const LeaseRef& lease) {
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

}  // namespace hpo::server
