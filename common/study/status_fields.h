// The fields of a study's state, as it is shown and exchanged.
#pragma once

#include "common/study/study_fields.h"
#include "common/study/study_status.h"

namespace hpo {

template <>
struct NamesOf<StudyOrder> {
  static constexpr const char* kNames[] = {"RUN", "PAUSE", "STOP"};
  static constexpr char kMeans[] = "an order to a study";
};

void VisitFields(Is<TrialCounts> auto& counts, auto visit) {
  visit({"queued"}, counts.queued);
  visit({"running"}, counts.running);
  visit({"completed"}, counts.completed);
  visit({"pruned"}, counts.pruned);
  visit({"failed"}, counts.failed);
  visit({"cancelled"}, counts.cancelled);
  visit({"oom_met"}, counts.oom_met);
  visit({"oom_predicted"}, counts.oom_predicted);
  visit({"oom_recovered"}, counts.oom_recovered);
  visit({"demonstration"}, counts.demonstration);
  visit({"imported"}, counts.imported);
  visit({"infeasible"}, counts.infeasible);
}

void VisitFields(Is<DryRunCounts> auto& counts, auto visit) {
  visit({"made"}, counts.made);
  visit({"refused"}, counts.refused);
  visit({"uncertain"}, counts.uncertain);
  visit({"failed"}, counts.failed);
  visit({"took"}, counts.took);
  visit({"saved"}, counts.saved);
  visit({"trouble"}, counts.trouble);
}

void VisitFields(Is<TimeByUse> auto& time, auto visit) {
  visit({"useful"}, time.useful);
  visit({"out_of_memory"}, time.out_of_memory);
  visit({"pruned"}, time.pruned);
  visit({"failed"}, time.failed);
  visit({"cancelled"}, time.cancelled);
  visit({"preempted"}, time.preempted);
  visit({"lost"}, time.lost);
}

void VisitFields(Is<PriorStatus> auto& prior, auto visit) {
  visit({"study"}, prior.study);
  visit({"trials"}, prior.num_trials);
  visit({"skipped"}, prior.num_skipped);
  visit({"why_skipped"}, prior.why_skipped);
}

// Without its trial.
void VisitFields(Is<WorkerStatus> auto& worker, auto visit) {
  visit({"name"}, worker.name);
  visit({"device"}, worker.device);
  visit({.key = "capacity", .zero_is_known = true}, worker.capacity);
  visit({"alive"}, worker.alive);
  visit({"last_heartbeat"}, worker.last_heartbeat);
  visit({"notice"}, worker.notice);
  visit({"drained"}, worker.drained);
  visit({"allocated"}, worker.allocated);
  visit({"reserved"}, worker.reserved);
  visit({"step"}, worker.step);
  visit({"stage"}, worker.stage);
  visit({"trial_started"}, worker.trial_started);
  visit({"idle_because"}, worker.idle_because);
  visit({"gpus"}, worker.gpus);
}

}  // namespace hpo
