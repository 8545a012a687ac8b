#include "worker/agent/session/convert_worker.h"

#include <utility>

#include "common/base/limits.h"
#include "common/base/status.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/time_proto.h"
#include "proto/convert/trial_proto.h"
#include "proto/convert/worker_proto.h"
#include "worker/agent/process/trainer_line.h"

namespace hpo {
namespace {

// Any request that carries a lease.
template <typename Request>
void SetLease(const LeaseRef& lease, Request& request) {
  request.set_study(lease.trial.study);
  request.set_trial(lease.trial.number.value);
  request.set_attempt(lease.attempt.value);
  request.set_lease_token(lease.token);
  request.set_database(lease.database);
}

Directive FromProto(v1::Directive directive) {
  switch (directive) {
    case v1::DIRECTIVE_STOP_PRUNED:
      return Directive::kStopPruned;
    case v1::DIRECTIVE_LEASE_LOST:
      return Directive::kLeaseLost;
    case v1::DIRECTIVE_CANCELLED:
      return Directive::kCancelled;
    case v1::DIRECTIVE_PREEMPTED:
      return Directive::kPreempted;
    case v1::DIRECTIVE_TIME_LIMIT:
      return Directive::kTimeLimit;
    default:
      return Directive::kContinue;
  }
}

TrainerSpec TrainerOf(const v1::Assignment& proto) {
  TrainerSpec trainer;
  trainer.task = proto.task();
  trainer.train = proto.train();
  trainer.validation = proto.validation();
  trainer.labels.assign(proto.labels().begin(), proto.labels().end());
  trainer.epochs = proto.epochs();
  trainer.measure_every_steps = proto.measure_every_steps();
  trainer.model_init = proto.model_init();
  return trainer;
}

}  // namespace

v1::HeartbeatRequest::Lease ToProto(const LeaseBeat& beat) {
  v1::HeartbeatRequest::Lease proto;
  SetLease(beat.lease, proto);
  proto.set_step(beat.step);
  proto.set_stage(beat.stage);
  proto.set_allocated_bytes(beat.allocated.count);
  proto.set_reserved_bytes(beat.reserved.count);
  return proto;
}

v1::ReportMeasurementsRequest ToProto(const AttemptReport& report) {
  v1::ReportMeasurementsRequest proto;
  SetLease(report.lease, proto);
  for (const Measurement& measurement : report.measurements) {
    *proto.add_measurements() = ToProto(measurement);
  }
  if (report.new_plan) {
    *proto.mutable_plan() = ToProto(*report.new_plan);
  }
  proto.set_num_ooms(report.num_ooms);
  proto.set_of_result(report.of_result);
  for (const MemoryRecord& record : report.memory_records) {
    *proto.add_memory_records() = ToProto(record);
  }
  *proto.mutable_attributes() = ToProto(report.attributes);
  return proto;
}

v1::FinishTrialRequest ToProto(const FinishRequest& request) {
  v1::FinishTrialRequest proto;
  SetLease(request.lease, proto);
  TrialOutcome outcome = request.outcome;
  ShortenTexts(outcome);  // also of what an earlier version left in the outbox
  *proto.mutable_outcome() = ToProto(outcome);
  *proto.mutable_memory() = ToProto(request.memory);
  *proto.mutable_final_plan() = ToProto(request.final_plan);
  for (const Measurement& measurement : request.measurements) {
    *proto.add_measurements() = ToProto(measurement);
  }
  for (const MemoryRecord& record : request.memory_records) {
    *proto.add_memory_records() = ToProto(record);
  }
  *proto.mutable_attributes() = ToProto(request.attributes);
  return proto;
}

v1::ReleaseTrialRequest ToProto(const TrialRelease& release) {
  v1::ReleaseTrialRequest proto;
  SetLease(release.lease, proto);
  proto.set_reason(ToProto(release.reason));
  proto.set_needed_bytes(release.needed.count);
  proto.set_note(Shortened(release.note, kTextLimit));
  return proto;
}

Registration FromProto(const v1::RegisterWorkerResponse& response) {
  return {.session = response.session(),
          .server_epoch = response.server_epoch(),
          .heartbeat_interval = FromProto(response.heartbeat_interval()),
          .lease_ttl = FromProto(response.lease_ttl()),
          .studies_version = response.studies_version(),
          .database = response.database()};
}

absl::StatusOr<Assignment> FromProto(const v1::Assignment& proto) {
  Assignment assignment;
  assignment.lease = {.trial = {.study = proto.study(), .number = {proto.trial()}},
                      .attempt = {proto.attempt()},
                      .token = proto.lease_token(),
                      .database = proto.database()};
  assignment.lease_ttl = FromProto(proto.lease_ttl());
  assignment.heartbeat_interval = FromProto(proto.heartbeat_interval());
  HPO_ASSIGN_OR_RETURN(assignment.params, FromProto(proto.params()));
  HPO_ASSIGN_OR_RETURN(assignment.plan, FromProto(proto.plan()));
  assignment.predicted = Bytes{proto.predicted_bytes()};
  assignment.required = Bytes{proto.required_bytes()};
  assignment.limit = Bytes{proto.limit_bytes()};
  HPO_ASSIGN_OR_RETURN(assignment.narrowed_space, FromProto(proto.narrowed_space()));
  assignment.admission = proto.admission();
  assignment.demonstration = proto.demonstration();
  HPO_ASSIGN_OR_RETURN(assignment.policy, MemoryPolicyFromWire(proto.memory_policy()));
  assignment.allow_checkpointing = proto.allow_checkpointing();
  assignment.trainer = TrainerOf(proto);
  HPO_ASSIGN_OR_RETURN(assignment.objective, FromProto(proto.objective()));
  for (const v1::MetricConstraint& constraint : proto.constraints()) {
    assignment.constraints.push_back(FromProto(constraint));
  }
  assignment.seed = proto.seed();
  return assignment;
}

absl::StatusOr<AcquireResult> FromProto(const v1::AcquireTrialResponse& response) {
  AcquireResult result{.studies_version = response.studies_version(),
                       .all_studies_finished = response.all_studies_finished(),
                       .draining = response.draining(),
                       .waiting_for = response.waiting_for(),
                       .finished = {}};
  for (const v1::FinishedStudy& finished : response.finished()) {
    result.finished.push_back(
        {.study = finished.study(), .why = finished.why(), .failed = finished.failed()});
  }
  if (response.has_assignment()) {
    HPO_ASSIGN_OR_RETURN(result.assignment, FromProto(response.assignment()));
  }
  return result;
}

HeartbeatResult FromProto(const v1::HeartbeatResponse& response) {
  HeartbeatResult result{.directives = {},
                         .next = FromProto(response.next()),
                         .server_epoch = response.server_epoch(),
                         .register_again = response.register_again()};
  for (const int directive : response.directives()) {
    result.directives.push_back(FromProto(static_cast<v1::Directive>(directive)));
  }
  return result;
}

ReportResult FromProto(const v1::ReportMeasurementsResponse& response) {
  return {.should_stop = response.should_stop(),
          .pruner = response.pruner(),
          .why = response.why(),
          .directive = FromProto(response.directive())};
}

absl::StatusOr<FinishResult> FromProto(const v1::FinishTrialResponse& response) {
  HPO_ASSIGN_OR_RETURN(const TrialState state, FromProto(response.state()));
  return FinishResult{.state = state, .stored = response.stored()};
}

}  // namespace hpo
