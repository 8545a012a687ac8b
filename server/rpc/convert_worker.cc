#include "server/rpc/convert_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "proto/convert/enum_pairs.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/time_proto.h"
#include "proto/convert/trial_proto.h"
#include "proto/convert/worker_proto.h"

namespace hpo {
namespace {

constexpr EnumPairs<Directive, v1::Directive, 6> kDirectives = {{
    {Directive::kContinue, v1::DIRECTIVE_CONTINUE},
    {Directive::kStopPruned, v1::DIRECTIVE_STOP_PRUNED},
    {Directive::kLeaseLost, v1::DIRECTIVE_LEASE_LOST},
    {Directive::kCancelled, v1::DIRECTIVE_CANCELLED},
    {Directive::kPreempted, v1::DIRECTIVE_PREEMPTED},
    {Directive::kTimeLimit, v1::DIRECTIVE_TIME_LIMIT},
}};

// Several messages name a lease by the same fields.
template <typename Message>
LeaseRef LeaseOf(const Message& proto) {
  return LeaseRef{.trial = {.study = proto.study(), .number = TrialNumber{proto.trial()}},
                  .attempt = AttemptNumber{proto.attempt()},
                  .token = proto.lease_token(),
                  .database = proto.database()};
}

template <typename Message>
std::vector<Measurement> MeasurementsOf(const Message& proto) {
  std::vector<Measurement> measurements;
  measurements.reserve(proto.measurements_size());
  for (const v1::Measurement& measurement : proto.measurements()) {
    measurements.push_back(FromProto(measurement));
  }
  return measurements;
}

template <typename Message>
absl::StatusOr<std::vector<MemoryRecord>> MemoryRecordsOf(const Message& proto) {
  std::vector<MemoryRecord> records;
  for (const v1::MemoryRecord& record : proto.memory_records()) {
    HPO_ASSIGN_OR_RETURN(records.emplace_back(), FromProto(record));
  }
  return records;
}

}  // namespace

v1::RegisterWorkerResponse ToProto(const Registration& registration) {
  v1::RegisterWorkerResponse proto;
  proto.set_session(registration.session);
  proto.set_server_epoch(registration.server_epoch);
  *proto.mutable_heartbeat_interval() = ToProto(registration.heartbeat_interval);
  *proto.mutable_lease_ttl() = ToProto(registration.lease_ttl);
  proto.set_studies_version(registration.studies_version);
  proto.set_database(registration.database);
  return proto;
}

AcquireCall FromProto(const v1::AcquireTrialRequest& proto) {
  return AcquireCall{.session = proto.session(),
                     .request_id = proto.request_id(),
                     .wait = FromProto(proto.wait()),
                     .capacity = Bytes{proto.capacity_bytes()}};
}

v1::Assignment ToProto(const Assignment& assignment) {
  v1::Assignment proto;
  proto.set_study(assignment.lease.trial.study);
  proto.set_trial(assignment.lease.trial.number.value);
  proto.set_attempt(assignment.lease.attempt.value);
  proto.set_lease_token(assignment.lease.token);
  proto.set_database(assignment.lease.database);
  *proto.mutable_lease_ttl() = ToProto(assignment.lease_ttl);
  *proto.mutable_heartbeat_interval() = ToProto(assignment.heartbeat_interval);
  *proto.mutable_params() = ToProto(assignment.params);
  *proto.mutable_plan() = ToProto(assignment.plan);
  proto.set_predicted_bytes(assignment.predicted.count);
  proto.set_required_bytes(assignment.required.count);
  proto.set_limit_bytes(assignment.limit.count);
  *proto.mutable_narrowed_space() = ToProto(assignment.narrowed_space);
  proto.set_admission(assignment.admission);
  proto.set_demonstration(assignment.demonstration);
  proto.set_memory_policy(std::string(WireName(assignment.policy)));
  proto.set_allow_checkpointing(assignment.allow_checkpointing);
  const TrainerSpec& trainer = assignment.trainer;
  proto.set_task(trainer.task);
  proto.set_train(trainer.train);
  proto.set_validation(trainer.validation);
  proto.mutable_labels()->Assign(trainer.labels.begin(), trainer.labels.end());
  proto.set_epochs(trainer.epochs);
  proto.set_measure_every_steps(trainer.measure_every_steps);
  proto.set_model_init(trainer.model_init);
  *proto.mutable_objective() = ToProto(assignment.objective);
  for (const MetricConstraint& constraint : assignment.constraints) {
    *proto.add_constraints() = ToProto(constraint);
  }
  proto.set_seed(assignment.seed);
  return proto;
}

v1::AcquireTrialResponse ToProto(const AcquireResult& result) {
  v1::AcquireTrialResponse proto;
  if (result.assignment) *proto.mutable_assignment() = ToProto(*result.assignment);
  proto.set_studies_version(result.studies_version);
  proto.set_all_studies_finished(result.all_studies_finished);
  proto.set_draining(result.draining);
  proto.set_waiting_for(result.waiting_for);
  for (const FinishedStudy& finished : result.finished) {
    v1::FinishedStudy& added = *proto.add_finished();
    added.set_study(finished.study);
    added.set_why(finished.why);
    added.set_failed(finished.failed);
  }
  return proto;
}

HeartbeatCall FromProto(const v1::HeartbeatRequest& proto) {
  HeartbeatCall call{.session = proto.session(),
                     .capacity = Bytes{proto.capacity_bytes()},
                     .notice = proto.notice(),
                     .leaving = proto.leaving()};
  for (const v1::HeartbeatRequest::Lease& lease : proto.leases()) {
    call.beats.push_back(LeaseBeat{.lease = LeaseOf(lease),
                                   .step = lease.step(),
                                   .stage = lease.stage(),
                                   .allocated = Bytes{lease.allocated_bytes()},
                                   .reserved = Bytes{lease.reserved_bytes()}});
  }
  return call;
}

v1::HeartbeatResponse ToProto(const HeartbeatResult& result) {
  v1::HeartbeatResponse proto;
  for (const Directive directive : result.directives) {
    proto.add_directives(ToWire(kDirectives, directive));
  }
  *proto.mutable_next() = ToProto(result.next);
  proto.set_server_epoch(result.server_epoch);
  proto.set_register_again(result.register_again);
  return proto;
}

absl::StatusOr<ReportCall> FromProto(const v1::ReportMeasurementsRequest& proto) {
  ReportCall call{.session = proto.session()};
  AttemptReport& report = call.report;
  report.lease = LeaseOf(proto);
  report.measurements = MeasurementsOf(proto);
  report.num_ooms = proto.num_ooms();
  report.of_result = proto.of_result();
  if (proto.has_plan()) {
    HPO_ASSIGN_OR_RETURN(report.new_plan, FromProto(proto.plan()));
  }
  HPO_ASSIGN_OR_RETURN(report.memory_records, MemoryRecordsOf(proto));
  HPO_ASSIGN_OR_RETURN(report.attributes, CheckedAttributes(FromProto(proto.attributes())));
  return call;
}

v1::ReportMeasurementsResponse ToProto(const ReportResult& result) {
  v1::ReportMeasurementsResponse proto;
  proto.set_should_stop(result.should_stop);
  proto.set_pruner(result.pruner);
  proto.set_why(result.why);
  proto.set_directive(ToWire(kDirectives, result.directive));
  return proto;
}

absl::StatusOr<FinishCall> FromProto(const v1::FinishTrialRequest& proto) {
  FinishCall call{.session = proto.session(), .request_id = proto.request_id()};
  call.request.lease = LeaseOf(proto);
  HPO_ASSIGN_OR_RETURN(call.request.outcome, FromProto(proto.outcome()));
  call.request.memory = FromProto(proto.memory());
  if (proto.has_final_plan()) {
    HPO_ASSIGN_OR_RETURN(call.request.final_plan, FromProto(proto.final_plan()));
  }
  call.request.measurements = MeasurementsOf(proto);
  HPO_ASSIGN_OR_RETURN(call.request.memory_records, MemoryRecordsOf(proto));
  HPO_ASSIGN_OR_RETURN(call.request.attributes, CheckedAttributes(FromProto(proto.attributes())));
  return call;
}

v1::FinishTrialResponse ToProto(const FinishResult& result) {
  v1::FinishTrialResponse proto;
  proto.set_state(ToProto(result.state));
  proto.set_stored(result.stored);
  return proto;
}

absl::StatusOr<ReleaseCall> FromProto(const v1::ReleaseTrialRequest& proto) {
  ReleaseCall call{.session = proto.session(),
                   .request_id = proto.request_id(),
                   .lease = LeaseOf(proto),
                   .needed = Bytes{proto.needed_bytes()},
                   .note = proto.note()};
  HPO_ASSIGN_OR_RETURN(call.reason, FromProto(proto.reason()));
  return call;
}

}  // namespace hpo
