// The columns of trials and attempts, as row_codec.h reads and writes them.
#pragma once

#include <optional>
#include <utility>

#include "common/study/trial.h"
#include "common/study/trial_fields.h"
#include "server/storage/records.h"
#include "server/storage/row_codec.h"

namespace hpo::server {

void VisitColumns(Is<TrialRecord> auto& record, auto visit) {
  visit({"number", RowColumn::kKey}, record.trial.id.number);
  VisitStored(record.trial, visit);
  visit({"current_attempt"}, record.current_attempt);
  visit({"result_attempt"}, record.result_attempt);
  visit({"preemptions"}, record.retries.preemptions);
  visit({"worker_losses"}, record.retries.worker_losses);
  visit({"takeovers"}, record.retries.takeovers);
  visit({"transient_failures"}, record.retries.transient_failures);
  visit({"device_ooms"}, record.retries.device_ooms);
  visit({"host_ooms"}, record.retries.host_ooms);
  visit({"oom_met"}, record.oom_met);
  visit({"last_oom"}, record.last_oom);
  visit({"last_sequence", RowColumn::kInserted}, record.last_sequence);  // EventLog::Append
  visit({"held", RowColumn::kInserted}, record.held);                    // TrialStore::SetHeld
  // For filters.
  std::optional<PruneReason> reason;
  if (record.trial.outcome.has_value()) reason = PruneReasonOf(*record.trial.outcome);
  visit({"prune_reason", RowColumn::kDerived}, std::as_const(reason));
}

void VisitColumns(Is<AttemptRecord> auto& record, auto visit) {
  visit({"number", RowColumn::kKey}, record.trial);
  visit({"attempt", RowColumn::kKey}, record.attempt.number);
  VisitStored(record.attempt, visit);
  visit({"instance_key"}, record.instance_key);
  visit({"token"}, record.token_hash);
  visit({"usable"}, record.limit);
  visit({"required"}, record.required);
  visit({"preempted"}, record.preempted);
  visit({"stop_order"}, record.stop_order);
  visit({"outcome"}, record.outcome);
}

}  // namespace hpo::server
