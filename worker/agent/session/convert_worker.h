// The agent's half of worker.proto: its requests to the wire, the server's answers to values.
// What both ends convert is in proto/convert (conventions: proto/convert/params_proto.h). Protobuf
// types stop here.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/protocol/preflight.h"
#include "common/protocol/worker_exchange.h"
#include "hpo/v1/worker.pb.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

v1::HeartbeatRequest::Lease ToProto(const LeaseBeat& beat);
v1::ReportMeasurementsRequest ToProto(const AttemptReport& report);
v1::FinishTrialRequest ToProto(const FinishRequest& request);
v1::ReleaseTrialRequest ToProto(const TrialRelease& release);
v1::ReportPreflightRequest ToProto(const PreflightReport& report);

Registration FromProto(const v1::RegisterWorkerResponse& response);

//   InvalidArgument  names the field that has no value, or none that this version knows
absl::StatusOr<AcquireResult> FromProto(const v1::AcquireTrialResponse& response);

//   InvalidArgument  as above
absl::StatusOr<std::optional<Preflight>> FromProto(const v1::AcquirePreflightResponse& response);

// A directive that this version does not know reads as kContinue.
HeartbeatResult FromProto(const v1::HeartbeatResponse& response);

ReportResult FromProto(const v1::ReportMeasurementsResponse& response);
absl::StatusOr<FinishResult> FromProto(const v1::FinishTrialResponse& response);

StudyData FromProto(const v1::ServedStudy& proto);

}  // namespace hpo::agent
