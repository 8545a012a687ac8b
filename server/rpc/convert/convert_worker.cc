#include "server/rpc/convert/convert_worker.h"

#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/log_tail.h"
#include "common/protocol/preflight_fields.h"
#include "common/protocol/worker_exchange_fields.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/space_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/trial_proto.h"
#include "proto/convert/worker_proto.h"

namespace hpo::server {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

void VisitFields(Is<AcquireCall> auto& call, auto visit) {
  visit({"session"}, call.session);
  visit({"request_id"}, call.request_id);
  visit({"wait"}, call.wait);
  visit({"capacity"}, call.capacity);
}

void VisitFields(Is<HeartbeatCall> auto& call, auto visit) {
  visit({"session"}, call.session);
  visit({"leases"}, call.beats);
  visit({"capacity"}, call.capacity);
  visit({"notice"}, call.notice);
  visit({"leaving"}, call.leaving);
  visit({"died"}, call.died);
}

void VisitFields(Is<ReportCall> auto& call, auto visit) {
  visit({"session"}, call.session);
  VisitFields(call.report, visit);
}

void VisitFields(Is<FinishCall> auto& call, auto visit) {
  visit({"session"}, call.session);
  visit({"request_id"}, call.request_id);
  VisitFields(call.request, visit);
}

void VisitFields(Is<ReleaseCall> auto& call, auto visit) {
  visit({"session"}, call.session);
  visit({"request_id"}, call.request_id);
  VisitFields(call.release, visit);
}

void VisitFields(Is<PreflightReportCall> auto& call, auto visit) {
  visit({"session"}, call.session);
  VisitFields(call.report, visit);
}

v1::RegisterWorkerResponse ToProto(const Registration& registration) {
  return ToMessage<v1::RegisterWorkerResponse>(registration);
}

AcquireCall FromProto(const v1::AcquireTrialRequest& proto) {
  return FromMessage<AcquireCall>(proto).value();
}

v1::ServedStudy ToServedStudy(const StudyStatus& study) {
  const TrainerSpec& trainer = study.spec.trainer;
  v1::ServedStudy proto;
  proto.set_name(study.spec.name);
  proto.set_train(trainer.train);
  proto.set_validation(trainer.validation);
  proto.set_task(trainer.task);
  proto.mutable_command()->Add(trainer.command.begin(), trainer.command.end());
  proto.set_workdir(trainer.workdir);
  proto.set_gpus(trainer.gpus);
  for (const Parameter& parameter : study.spec.space.parameters) {
    proto.add_parameters(parameter.name);
  }
  if (study.finished) {
    const std::string& why = study.waiting_for;
    proto.mutable_end()->set_study(study.spec.name);
    proto.mutable_end()->set_why(why.empty() ? "its budget is used up" : why);
    proto.mutable_end()->set_failed(!study.failure.empty());
  }
  return proto;
}

v1::AcquireTrialResponse ToProto(const AcquireResult& result) {
  return ToMessage<v1::AcquireTrialResponse>(result);
}

HeartbeatCall FromProto(const v1::HeartbeatRequest& proto) {
  HeartbeatCall call = FromMessage<HeartbeatCall>(proto).value();
  call.notice = Shortened(call.notice, kTextLimit);
  for (LeaseBeat& beat : call.beats) beat.log_tail = CheckedLogTail(beat.log_tail);
  return call;
}

v1::HeartbeatResponse ToProto(const HeartbeatResult& result) {
  v1::HeartbeatResponse proto = ToMessage<v1::HeartbeatResponse>(result);
  for (const Directive directive : result.directives) {
    proto.add_directives(ToWire<v1::Directive>(directive));
  }
  return proto;
}

absl::StatusOr<ReportCall> FromProto(const v1::ReportMeasurementsRequest& proto) {
  HPO_ASSIGN_OR_RETURN(ReportCall call, FromMessage<ReportCall>(proto));
  HPO_ASSIGN_OR_RETURN(call.report.attributes, CheckedAttributes(call.report.attributes));
  return call;
}

v1::ReportMeasurementsResponse ToProto(const ReportResult& result) {
  v1::ReportMeasurementsResponse proto = ToMessage<v1::ReportMeasurementsResponse>(result);
  proto.set_directive(ToWire<v1::Directive>(result.directive));
  return proto;
}

absl::StatusOr<FinishCall> FromProto(const v1::FinishTrialRequest& proto) {
  HPO_ASSIGN_OR_RETURN(FinishCall call, FromMessage<FinishCall>(proto));
  HPO_ASSIGN_OR_RETURN(call.request.attributes, CheckedAttributes(call.request.attributes));
  call.request.log_tail = CheckedLogTail(call.request.log_tail);
  return call;
}

v1::FinishTrialResponse ToProto(const FinishResult& result) {
  return ToMessage<v1::FinishTrialResponse>(result);
}

absl::StatusOr<ReleaseCall> FromProto(const v1::ReleaseTrialRequest& proto) {
  HPO_ASSIGN_OR_RETURN(ReleaseCall call, FromMessage<ReleaseCall>(proto));
  call.release.note = Shortened(call.release.note, kTextLimit);
  call.release.log_tail = CheckedLogTail(call.release.log_tail);
  return call;
}

v1::AcquirePreflightResponse ToProto(const std::optional<Preflight>& preflight) {
  v1::AcquirePreflightResponse proto;
  if (preflight.has_value()) *proto.mutable_preflight() = ToMessage<v1::Preflight>(*preflight);
  return proto;
}

absl::StatusOr<PreflightReportCall> FromProto(const v1::ReportPreflightRequest& proto) {
  HPO_ASSIGN_OR_RETURN(PreflightReportCall call, FromMessage<PreflightReportCall>(proto));
  call.report.message = Shortened(call.report.message, kTextLimit);
  return call;
}

}  // namespace hpo::server
