// The fields of a TrialTask. Messages that carry one have them among their own.
#pragma once

#include "common/protocol/trial_task.h"
#include "common/study/study_fields.h"
#include "common/study/trial_fields.h"

namespace hpo {

void VisitFields(Is<TrialTask> auto& task, auto visit) {
  const auto visit_job = [&](const Field& field, auto& member) {
    const JobField& job = field.job;
    if (job.key == nullptr) return;
    visit({.key = job.key, .presence = job.presence, .wire = job.wire}, member);
  };
  visit({"params"}, task.params);
  VisitFields(task.trainer, visit_job);
  VisitFields(task.memory, visit_job);
  visit({"objective"}, task.objective);
  visit({"admission", kAlways}, task.admission);
  visit({"limit", kAlways}, task.limit);
  visit({"plan"}, task.plan);
  visit({"predicted", kAlways}, task.predicted);
  visit({"seed"}, task.seed);
}

}  // namespace hpo
