#include "server/leases/attempt_end.h"

#include <algorithm>
#include <string>
#include <variant>

#include "common/base/status.h"
#include "server/trials/outcome_value.h"

namespace hpo::server {
namespace {

// A trial that people stopped does not run again, however its attempt ended.
Verdict AsOrdered(Verdict verdict, const AttemptRecord& attempt) {
  if (!attempt.stop_order) return verdict;
  if (!verdict.end || std::holds_alternative<Cancelled>(*verdict.end)) {
    verdict.end = Cancelled{.reason = *attempt.stop_order};
  }
  return verdict;
}

}  // namespace

absl::Status EndAttempt(TrialTransaction& transaction, const StudySpec& spec,
                        const AttemptEnding& ending, TrialRecord& record, AttemptRecord& attempt) {
  const Verdict verdict = AsOrdered(ending.verdict, attempt);
  attempt.attempt.state = ending.state;
  attempt.attempt.end_note = verdict.note;
  attempt.attempt.ended = transaction.now;
  HPO_RETURN_IF_ERROR(transaction.attempts.UpdateAttempt(attempt));
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

absl::Status StoreLogTail(TrialTransaction& transaction, const OpenTrials& open,
                          const AttemptRecord& attempt, const std::string& told) {
  const std::string tail =
      told.empty() ? open.LastLogTail(attempt.trial, attempt.attempt.number) : told;
  if (tail.empty()) return absl::OkStatus();
  return transaction.attempts.StoreLogTail(attempt.trial, attempt.attempt.number, tail);
}

}  // namespace hpo::server
