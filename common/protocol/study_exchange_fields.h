// The fields of what people ask of studies and of what the server answers.
#pragma once

#include "common/protocol/study_exchange.h"
#include "common/study/imported_trial.h"
#include "common/study/status_fields.h"
#include "common/study/trial_fields.h"

namespace hpo {

void VisitFields(Is<CreateResult> auto& result, auto visit) {
  visit({"study"}, result.study);
  visit({"created"}, result.created);
}

// remove_target is not listed: in the message it is a oneof with target, which ToProto and
// FromProto of StudyUpdate convert (proto/convert/study_exchange_proto.h).
void VisitFields(Is<StudyUpdate> auto& update, auto visit) {
  visit({"trials"}, update.trials);
  visit({"add_trials"}, update.add_trials);
  visit({"wall_clock"}, update.wall_clock);
  visit({"failures_in_a_row"}, update.failures_in_a_row);
  visit({"failed_share"}, update.failed_share);
  visit({"target"}, update.target);
  visit({"added_choices"}, update.added_choices);
}

void VisitFields(Is<StudyEdit> auto& edit, auto visit) {
  visit({"yaml"}, edit.yaml);
  visit({"origin"}, edit.origin);
  visit({"ranges"}, edit.ranges);
  visit({"validate_only"}, edit.validate_only);
}

void VisitFields(Is<EditResult> auto& result, auto visit) {
  visit({"study"}, result.study);
  visit({"before"}, result.before);
  visit({"after"}, result.after);
  visit({"outside"}, result.num_outside);
  visit({"cancelled"}, result.cancelled);
}

void VisitFields(Is<ArchiveEnd> auto& end, auto visit) {
  visit({"size"}, end.size);
  visit({"sha256"}, end.sha256);
  visit({"trials"}, end.num_trials);
}

void VisitFields(Is<EnqueueRequest> auto& request, auto visit) {
  visit({"params"}, request.params);
  visit({"demonstration"}, request.demonstration);
  visit({"skip_admission"}, request.skip_admission);
  visit({"forced_micro_batch"}, request.forced_micro_batch);
}

void VisitFields(Is<RetryRequest> auto& request, auto visit) {
  visit({"numbers"}, request.numbers);
  visit({"all_failed"}, request.all_failed);
}

void VisitFields(Is<SkippedTrial> auto& skipped, auto visit) {
  visit({"number"}, skipped.number);
  visit({"why"}, skipped.why);
}

void VisitFields(Is<RetryResult> auto& result, auto visit) {
  visit({"trials"}, result.trials);
  visit({"skipped"}, result.skipped);
}

void VisitFields(Is<TrialQuery> auto& query, auto visit) {
  visit({"states"}, query.filter.states);
  visit({"prune_reasons"}, query.filter.prune_reasons);
  visit({"newest_first"}, query.filter.newest_first);
  visit({"page_size"}, query.page_size);
  visit({"page_token"}, query.page_token);
}

void VisitFields(Is<TrialPage> auto& page, auto visit) {
  visit({"trials"}, page.trials);
  visit({"next_page_token"}, page.next_token);
  visit({"total"}, page.total);
}

void VisitFields(Is<MemoryQuery> auto& query, auto visit) {
  visit({"params"}, query.params);
  visit({"worker"}, query.worker);
  visit({"limit"}, query.limit);
}

void VisitFields(Is<TrialEvent> auto& event, auto visit) {
  visit({"sequence"}, event.sequence);
  visit({"kind"}, event.kind);
  visit({"trial"}, event.trial);
}

void VisitFields(Is<AttributeChange> auto& change, auto visit) {
  visit({"note"}, change.note);
  visit({"add_tags"}, change.add_tags);
  visit({"remove_tags"}, change.remove_tags);
  visit({"attributes"}, change.set);
}

void VisitFields(Is<ImportResult> auto& result, auto visit) {
  visit({"study"}, result.study);
  visit({"added"}, result.num_added);
  visit({"known"}, result.num_known);
}

}  // namespace hpo
