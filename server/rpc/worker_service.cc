// Tested by tests/server/rpc/rpc_server_test.cc.
#include "server/rpc/worker_service.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/convert/time_proto.h"
#include "proto/convert/trial_proto.h"
#include "proto/convert/worker_proto.h"
#include "server/rpc/convert/convert_worker.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

namespace {

// An answer that arrives after the deadline is lost; this much is left for the way back.
constexpr absl::Duration kReplyMargin = absl::Milliseconds(500);

// Time that the caller still waits; at least zero.
absl::Duration UntilDeadline(const grpc::ServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  return std::max(absl::ZeroDuration(), absl::FromChrono(left) - kReplyMargin);
}

}  // namespace

absl::Status WorkerServiceImpl::Noted(absl::Status refused, absl::string_view method,
                                      const Caller& caller) const {
  access_.audit().WriteSparingly({.event = "refused",
                                  .who = caller.name,
                                  .role = std::string(RoleName(caller.role)),
                                  .from = caller.from,
                                  .method = absl::StrCat(kService, method),
                                  .what = "",
                                  .result = absl::StatusCodeToString(refused.code()),
                                  .why = std::string(refused.message())});
  return refused;
}

template <typename T>
absl::StatusOr<T> WorkerServiceImpl::Noted(absl::StatusOr<T> result, absl::string_view method,
                                           const AccessControl::Permit& permit) const {
  if (!absl::IsAborted(result.status())) return result;
  return Noted(result.status(), method, permit.caller());
}

absl::Status WorkerServiceImpl::CheckOwner(const std::string& session, absl::string_view method,
                                           const Caller& caller) const {
  absl::Status owned = owners_.Check(caller, session);
  return owned.ok() ? owned : Noted(std::move(owned), method, caller);
}

grpc::Status WorkerServiceImpl::RegisterWorker(grpc::ServerContext* context,
                                               const v1::RegisterWorkerRequest* request,
                                               v1::RegisterWorkerResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const WorkerFacts facts, FromProto(*request));
  const Caller& caller = hpo_permit->caller();
  RegisteringProcess process{.worker = facts.worker,
                             .instance_key = facts.instance_key,
                             .predecessor = request->predecessor()};
  if (const absl::Status owned = owners_.CheckRegister(caller, process); !owned.ok()) {
    return ToGrpc(Noted(owned, __func__, caller));
  }
  HPO_RPC_ASSIGN(const Registration registration, api_.RegisterWorker(facts, process.predecessor));
  owners_.Register(caller, process, registration.session);
  *response = ToProto(registration);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::ListServedStudies(grpc::ServerContext* context,
                                                  const v1::ListServedStudiesRequest* request,
                                                  v1::ListServedStudiesResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(StudyPage page, queries_.ListStudies(request->page_size(), request->page_token()));
  for (const StudyStatus& study : page.studies) *response->add_studies() = ToServedStudy(study);
  response->set_next_page_token(page.next_token);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::AcquireTrial(grpc::ServerContext* context,
                                             const v1::AcquireTrialRequest* request,
                                             v1::AcquireTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_RETURN_IF_ERROR(CheckOwner(request->session(), __func__, hpo_permit->caller()));
  const AcquireCall call = FromProto(*request);
  const absl::Duration wait = std::min(call.wait, UntilDeadline(*context));
  HPO_RPC_ASSIGN(const AcquireResult result,
                 api_.AcquireTrial(call.session, call.request_id, wait, call.capacity,
                                   [context] { return context->IsCancelled(); }));
  *response = ToProto(result);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::Heartbeat(grpc::ServerContext* context,
                                          const v1::HeartbeatRequest* request,
                                          v1::HeartbeatResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_RETURN_IF_ERROR(CheckOwner(request->session(), __func__, hpo_permit->caller()));
  const HeartbeatCall call = FromProto(*request);
  HPO_RPC_ASSIGN(
      const HeartbeatResult result,
      api_.Heartbeat(call.session, call.beats, call.capacity, call.notice, call.goodbye()));
  *response = ToProto(result);
  return grpc::Status::OK;
}

SessionStreams::Reactor* WorkerServiceImpl::Attend(grpc::CallbackServerContext* context,
                                                   const v1::AttendRequest* request) {
  const auto permit = access_.Allow(absl::StrCat(kService, __func__), PeerOf(*context, access_));
  if (!permit.ok()) return SessionStreams::Refuse(permit.status());
  const absl::Status owned = CheckOwner(request->session(), __func__, permit->caller());
  return owned.ok() ? streams_.Open(request->session()) : SessionStreams::Refuse(owned);
}

grpc::Status WorkerServiceImpl::ReportMeasurements(grpc::ServerContext* context,
                                                   const v1::ReportMeasurementsRequest* request,
                                                   v1::ReportMeasurementsResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const ReportCall call, FromProto(*request));
  HPO_RPC_ASSIGN(const ReportResult result,
                 Noted(api_.ReportMeasurements(call.report), __func__, *hpo_permit));
  *response = ToProto(result);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::FinishTrial(grpc::ServerContext* context,
                                            const v1::FinishTrialRequest* request,
                                            v1::FinishTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const FinishCall call, FromProto(*request));
  HPO_RPC_ASSIGN(const FinishResult result,
                 Noted(api_.FinishTrial(call.request_id, call.request), __func__, *hpo_permit));
  *response = ToProto(result);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::ReleaseTrial(grpc::ServerContext* context,
                                             const v1::ReleaseTrialRequest* request,
                                             v1::ReleaseTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const ReleaseCall call, FromProto(*request));
  HPO_RPC_ASSIGN(const TrialState state,
                 Noted(api_.ReleaseTrial(call.request_id, call.release), __func__, *hpo_permit));
  response->set_state(ToProto(state));
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::AcquirePreflight(grpc::ServerContext* context,
                                                 const v1::AcquirePreflightRequest* request,
                                                 v1::AcquirePreflightResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_RETURN_IF_ERROR(CheckOwner(request->session(), __func__, hpo_permit->caller()));
  const absl::Duration wait = std::min(FromProto(request->wait()), UntilDeadline(*context));
  HPO_RPC_ASSIGN(const std::optional<Preflight> preflight,
                 api_.AcquirePreflight(request->session(), wait,
                                       [context] { return context->IsCancelled(); }));
  *response = ToProto(preflight);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::ReportPreflight(grpc::ServerContext* context,
                                                const v1::ReportPreflightRequest* request,
                                                v1::ReportPreflightResponse*) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_RETURN_IF_ERROR(CheckOwner(request->session(), __func__, hpo_permit->caller()));
  HPO_RPC_ASSIGN(const PreflightReportCall call, FromProto(*request));
  return ToGrpc(api_.ReportPreflight(call.session, call.report));
}

}  // namespace hpo::server
