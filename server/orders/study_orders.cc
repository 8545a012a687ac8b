// Tested by tests/server/scheduler/orders_test.cc.
#include "server/orders/study_orders.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/storage/trial_store.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {
namespace {

constexpr char kStudyStopped[] = "the study was stopped";

absl::Status ExpectState(const TrialRecord& record, TrialState state) {
  if (record.trial.state == state) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", record.trial.id.study, " #", record.trial.id.number.value,
                   ": expected a ", state == TrialState::kRunning ? "running" : "queued",
                   " one, got ", Name(record.trial.state)));
}

// Changes the attempt that runs the trial; one event of `kind` where `change` says that it did.
absl::Status OrderRunning(TrialTransaction& transaction, TrialNumber number, const char* kind,
                          const std::function<bool(AttemptRecord&)>& change) {
  HPO_ASSIGN_OR_RETURN(const TrialRecord trial, transaction.trials.LoadTrial(number));
  HPO_RETURN_IF_ERROR(ExpectState(trial, TrialState::kRunning));
  HPO_ASSIGN_OR_RETURN(AttemptRecord attempt,
                       transaction.attempts.LoadAttempt(number, trial.current_attempt));
  if (!change(attempt)) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(transaction.attempts.UpdateAttempt(attempt));
  transaction.Changed(number, kind);
  return absl::OkStatus();
}

absl::Status OrderStop(TrialTransaction& transaction, TrialNumber number,
                       const std::string& reason) {
  return OrderRunning(transaction, number, "stop_ordered", [&](AttemptRecord& attempt) {
    if (attempt.stop_order) return false;
    attempt.stop_order = reason;
    return true;
  });
}

}  // namespace

absl::Status StudyOrders::PreemptTrial(const std::string& name, TrialNumber number) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  return state_.writer.Write(*study, [&](TrialTransaction& transaction) {
    return OrderRunning(transaction, number, "preempt_ordered", [](AttemptRecord& attempt) {
      return !std::exchange(attempt.preempted, true);
    });
  });
}

absl::Status StudyOrders::StopTrial(const std::string& name, TrialNumber number,
                                    const std::string& reason) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  return state_.writer.Write(*study, [&](TrialTransaction& transaction) {
    return OrderStop(transaction, number, reason);
  });
}

absl::Status StudyOrders::CancelTrial(const std::string& name, TrialNumber number,
                                      const std::string& reason) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  return state_.writer.Write(*study, [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(TrialRecord record, transaction.trials.LoadTrial(number));
    HPO_RETURN_IF_ERROR(ExpectState(record, TrialState::kQueued));
    record.trial.state = TrialState::kCancelled;
    record.trial.outcome = Cancelled{.reason = reason};
    record.trial.ended = transaction.now;
    HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
    transaction.Changed(number, "finished");
    return absl::OkStatus();
  });
}

absl::StatusOr<Attributes> StudyOrders::ChangeAttributes(const std::string& name,
                                                         std::optional<TrialNumber> trial,
                                                         const AttributeChange& change) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  const TrialNumber number = trial.value_or(kNoTrial);
  Attributes changed;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    if (trial) HPO_RETURN_IF_ERROR(transaction.trials.LoadTrial(number).status());
    HPO_ASSIGN_OR_RETURN(const Attributes before, transaction.attributes.Load(number));
    HPO_ASSIGN_OR_RETURN(changed, Changed(before, change));
    if (trial) transaction.Noted(number);
    return transaction.attributes.Replace(number, changed);
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(*study, work));
  return changed;
}

absl::Status StudyOrders::OrderStudy(const std::string& name, StudyOrder order,
                                     bool stop_running_trials) {
  if (stop_running_trials && order != StudyOrder::kStop) {
    return absl::InvalidArgumentError(
        absl::StrCat("stop_running_trials: expected the order STOP with it, got ", Name(order)));
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  const bool forgives = order == StudyOrder::kRun && study->standing().failure;
  return state_.writer.Write(*study, [&](TrialTransaction& transaction) -> absl::Status {
    if (stop_running_trials) {
      HPO_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> held,
                           transaction.attempts.LoadLeases());
      for (const AttemptRecord& attempt : held) {
        HPO_RETURN_IF_ERROR(OrderStop(transaction, attempt.trial, kStudyStopped));
      }
    }
    const StudyStanding now = study->standing();
    if (order == now.order && !forgives) return absl::OkStatus();
    transaction.Order(
        {.order = order, .failures_from = forgives ? study->next_number() : now.failures_from});
    return absl::OkStatus();
  });
}

}  // namespace hpo::server
