// The fields of what a worker and the server tell each other.
#pragma once

#include "common/protocol/trial_task_fields.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/study_fields.h"
#include "common/study/trial_fields.h"

namespace hpo {

template <>
struct NamesOf<Directive> {
  static constexpr const char* kNames[] = {"CONTINUE",  "STOP_PRUNED", "LEASE_LOST",
                                           "CANCELLED", "PREEMPTED",   "TIME_LIMIT"};
  static constexpr char kMeans[] = "a directive";
};

void VisitFields(Is<Registration> auto& registration, auto visit) {
  visit({"session"}, registration.session);
  visit({"heartbeat_interval"}, registration.heartbeat_interval);
  visit({"studies_version"}, registration.studies_version);
  visit({"database"}, registration.database);
}

// Messages have these among their own.
void VisitFields(Is<LeaseRef> auto& lease, auto visit) {
  visit({"study"}, lease.trial.study);
  visit({"trial"}, lease.trial.number.value);
  visit({"attempt"}, lease.attempt.value);
  visit({.key = "token", .wire = "lease_token"}, lease.token);
  visit({"database", kAlways}, lease.database);
}

void VisitFields(Is<Assignment> auto& assignment, auto visit) {
  VisitFields(assignment.lease, visit);
  VisitFields(assignment.task, visit);
  visit({"required"}, assignment.required);
  visit({"demonstration"}, assignment.demonstration);
  visit({"constraints"}, assignment.constraints);
  visit({"longest_time"}, assignment.longest_time);
}

void VisitFields(Is<FinishedStudy> auto& finished, auto visit) {
  visit({"study"}, finished.study);
  visit({"why"}, finished.why);
  visit({"failed"}, finished.failed);
}

void VisitFields(Is<AcquireResult> auto& result, auto visit) {
  visit({"assignment"}, result.assignment);
  visit({"studies_version"}, result.studies_version);
  visit({"all_studies_finished"}, result.all_studies_finished);
  visit({"draining"}, result.draining);
  visit({"waiting_for"}, result.waiting_for);
  visit({"finished"}, result.finished);
  visit({"blocked"}, result.blocked);
  visit({"drained"}, result.drained);
}

void VisitFields(Is<LeaseBeat> auto& beat, auto visit) {
  VisitFields(beat.lease, visit);
  visit({"step"}, beat.step);
  visit({"stage"}, beat.stage);
  visit({"allocated"}, beat.allocated);
  visit({"reserved"}, beat.reserved);
  visit({"log_tail"}, beat.log_tail);
}

// Without the directives, of which a newer server may send others.
void VisitFields(Is<HeartbeatResult> auto& result, auto visit) {
  visit({"next"}, result.next);
  visit({"register_again"}, result.register_again);
}

void VisitFields(Is<AttemptReport> auto& report, auto visit) {
  VisitFields(report.lease, visit);
  visit({"measurements"}, report.measurements);
  visit({"plan"}, report.new_plan);
  visit({"num_ooms"}, report.num_ooms);
  visit({"memory_records"}, report.memory_records);
  visit({"attributes"}, report.attributes);
  visit({"of_result"}, report.of_result);
}

// Without the directive, as above.
void VisitFields(Is<ReportResult> auto& result, auto visit) {
  visit({"should_stop"}, result.should_stop);
  visit({"pruner"}, result.pruner);
  visit({"why"}, result.why);
}

void VisitFields(Is<FinishRequest> auto& request, auto visit) {
  VisitFields(request.lease, visit);
  visit({"outcome"}, request.outcome);
  visit({"memory"}, request.memory);
  visit({"final_plan", kAlways}, request.final_plan);
  visit({"measurements"}, request.measurements);
  visit({"memory_records", kAlways}, request.memory_records);
  visit({"attributes", kAlways}, request.attributes);
  visit({"log_tail", kIfSaid}, request.log_tail);
}

void VisitFields(Is<TrialRelease> auto& release, auto visit) {
  VisitFields(release.lease, visit);
  visit({"reason"}, release.reason);
  visit({"needed"}, release.needed);
  visit({"note"}, release.note);
  visit({"log_tail"}, release.log_tail);
}

void VisitFields(Is<FinishResult> auto& result, auto visit) {
  visit({"state"}, result.state);
  visit({"stored"}, result.stored);
}

}  // namespace hpo
