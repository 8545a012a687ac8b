// The server's half of worker.proto: requests to values, answers to the wire. What both ends
// convert is in proto/convert (conventions: proto/convert/params_proto.h). Protobuf types stop
// here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/preflight.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/study_status.h"
#include "hpo/v1/worker.pb.h"

namespace hpo::server {

v1::RegisterWorkerResponse ToProto(const Registration& registration);

// The arguments of one AcquireTrial.
struct AcquireCall {
  std::string session;
  std::string request_id;
  absl::Duration wait;
  Bytes capacity;
  bool operator==(const AcquireCall&) const = default;
};
AcquireCall FromProto(const v1::AcquireTrialRequest& proto);

// Of the trainer spec: task, data files, epochs, measure_every_steps, model_init and labels travel;
// its defaults are part of the parameters already.

v1::AcquireTrialResponse ToProto(const AcquireResult& result);

// What a worker needs to know of a study.
v1::ServedStudy ToServedStudy(const StudyStatus& study);

struct HeartbeatCall {
  std::string session;
  std::vector<LeaseBeat> beats;
  Bytes capacity;
  std::string notice;
  bool leaving = false;
  bool died = false;

  Goodbye goodbye() const {
    if (!leaving) return Goodbye::kNone;
    return died ? Goodbye::kDied : Goodbye::kLeaving;
  }
};
HeartbeatCall FromProto(const v1::HeartbeatRequest& proto);

v1::HeartbeatResponse ToProto(const HeartbeatResult& result);

struct ReportCall {
  std::string session;
  AttemptReport report;
};
//   InvalidArgument  a memory record or a plan that is none
absl::StatusOr<ReportCall> FromProto(const v1::ReportMeasurementsRequest& proto);

v1::ReportMeasurementsResponse ToProto(const ReportResult& result);

struct FinishCall {
  std::string session;
  std::string request_id;
  FinishRequest request;
};
//   InvalidArgument  no outcome, a plan or a memory record that is none; an absent final plan is
//                    one row at a time
absl::StatusOr<FinishCall> FromProto(const v1::FinishTrialRequest& proto);

v1::FinishTrialResponse ToProto(const FinishResult& result);

struct ReleaseCall {
  std::string session;
  std::string request_id;
  TrialRelease release;
};
absl::StatusOr<ReleaseCall> FromProto(const v1::ReleaseTrialRequest& proto);

v1::AcquirePreflightResponse ToProto(const std::optional<Preflight>& preflight);

struct PreflightReportCall {
  std::string session;
  PreflightReport report;
};
//   InvalidArgument  a state that is none
absl::StatusOr<PreflightReportCall> FromProto(const v1::ReportPreflightRequest& proto);

}  // namespace hpo::server
