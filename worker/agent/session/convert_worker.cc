#include "worker/agent/session/convert_worker.h"

#include "common/base/limits.h"
#include "common/protocol/preflight_fields.h"
#include "common/protocol/worker_exchange_fields.h"
#include "common/study/outcome_text.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/space_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/trial_proto.h"
#include "proto/convert/worker_proto.h"

namespace hpo::agent {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

namespace {

Directive DirectiveOf(int number) {
  return FromWire<Directive>(static_cast<v1::Directive>(number)).value_or(Directive::kContinue);
}

}  // namespace

v1::HeartbeatRequest::Lease ToProto(const LeaseBeat& beat) {
  return ToMessage<v1::HeartbeatRequest::Lease>(beat);
}

v1::ReportMeasurementsRequest ToProto(const AttemptReport& report) {
  return ToMessage<v1::ReportMeasurementsRequest>(report);
}

v1::FinishTrialRequest ToProto(const FinishRequest& request) {
  FinishRequest sent = request;
  ShortenTexts(sent.outcome);  // also of what an earlier version left in the outbox
  return ToMessage<v1::FinishTrialRequest>(sent);
}

v1::ReleaseTrialRequest ToProto(const TrialRelease& release) {
  TrialRelease sent = release;
  sent.note = Shortened(release.note, kTextLimit);
  return ToMessage<v1::ReleaseTrialRequest>(sent);
}

v1::ReportPreflightRequest ToProto(const PreflightReport& report) {
  PreflightReport sent = report;
  sent.message = Shortened(report.message, kTextLimit);
  return ToMessage<v1::ReportPreflightRequest>(sent);
}

Registration FromProto(const v1::RegisterWorkerResponse& response) {
  return FromMessage<Registration>(response).value();
}

absl::StatusOr<AcquireResult> FromProto(const v1::AcquireTrialResponse& response) {
  return FromMessage<AcquireResult>(response);
}

absl::StatusOr<std::optional<Preflight>> FromProto(const v1::AcquirePreflightResponse& response) {
  if (!response.has_preflight()) return std::nullopt;
  return FromMessage<Preflight>(response.preflight());
}

HeartbeatResult FromProto(const v1::HeartbeatResponse& response) {
  HeartbeatResult result = FromMessage<HeartbeatResult>(response).value();
  for (const int directive : response.directives()) {
    result.directives.push_back(DirectiveOf(directive));
  }
  return result;
}

ReportResult FromProto(const v1::ReportMeasurementsResponse& response) {
  ReportResult result = FromMessage<ReportResult>(response).value();
  result.directive = DirectiveOf(response.directive());
  return result;
}

absl::StatusOr<FinishResult> FromProto(const v1::FinishTrialResponse& response) {
  return FromMessage<FinishResult>(response);
}

StudyData FromProto(const v1::ServedStudy& proto) {
  StudyData study{.study = proto.name(),
                  .train = proto.train(),
                  .validation = proto.validation(),
                  .task = proto.task(),
                  .command = {proto.command().begin(), proto.command().end()},
                  .workdir = proto.workdir(),
                  .gpus = proto.has_gpus() ? proto.gpus() : 1,
                  .parameters = {proto.parameters().begin(), proto.parameters().end()}};
  if (proto.has_end()) {
    study.end = FinishedStudy{
        .study = proto.end().study(), .why = proto.end().why(), .failed = proto.end().failed()};
  }
  return study;
}

}  // namespace hpo::agent
