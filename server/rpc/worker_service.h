// WorkerService over gRPC: converts and forwards to WorkerApi. Thread-safe, as gRPC calls it from
// its pool; AcquireTrial and AcquirePreflight hold a thread of it for as long as they wait, Attend
// none.
#pragma once

#include "hpo/v1/worker.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/access/session_owners.h"
#include "server/api/study_queries.h"
#include "server/api/worker_api.h"
#include "server/rpc/session_streams.h"

namespace hpo::server {

// Codes: see WorkerApi; InvalidArgument where a message does not convert.
class WorkerServiceImpl final
    : public v1::WorkerService::WithCallbackMethod_Attend<v1::WorkerService::Service> {
 public:
  // All outlive the service.
  WorkerServiceImpl(WorkerApi& api, const StudyQueries& queries, AccessControl& access)
      : api_(api), queries_(queries), access_(access), streams_(api) {}

  grpc::Status RegisterWorker(grpc::ServerContext* context,
                              const v1::RegisterWorkerRequest* request,
                              v1::RegisterWorkerResponse* response) override;
  grpc::Status ListServedStudies(grpc::ServerContext* context,
                                 const v1::ListServedStudiesRequest* request,
                                 v1::ListServedStudiesResponse* response) override;
  // Waits no longer than `wait`, 50 s and the call's deadline allow.
  grpc::Status AcquireTrial(grpc::ServerContext* context, const v1::AcquireTrialRequest* request,
                            v1::AcquireTrialResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override;
  SessionStreams::Reactor* Attend(grpc::CallbackServerContext* context,
                                  const v1::AttendRequest* request) override;
  // The server ends: sessions attend no longer.
  void EndStreams() { streams_.EndAll(); }
  grpc::Status ReportMeasurements(grpc::ServerContext* context,
                                  const v1::ReportMeasurementsRequest* request,
                                  v1::ReportMeasurementsResponse* response) override;
  grpc::Status FinishTrial(grpc::ServerContext* context, const v1::FinishTrialRequest* request,
                           v1::FinishTrialResponse* response) override;
  grpc::Status ReleaseTrial(grpc::ServerContext* context, const v1::ReleaseTrialRequest* request,
                            v1::ReleaseTrialResponse* response) override;
  // Waits as AcquireTrial does.
  grpc::Status AcquirePreflight(grpc::ServerContext* context,
                                const v1::AcquirePreflightRequest* request,
                                v1::AcquirePreflightResponse* response) override;
  grpc::Status ReportPreflight(grpc::ServerContext* context,
                               const v1::ReportPreflightRequest* request,
                               v1::ReportPreflightResponse* response) override;

 private:
  // Whether the session is of the caller's token; a refusal is in the audit log.
  absl::Status CheckOwner(const std::string& session, absl::string_view method,
                          const Caller& caller) const;
  absl::Status Noted(absl::Status refused, absl::string_view method, const Caller& caller) const;
  // `result`; the audit log names a caller that has been refused a lease, which another one holds.
  template <typename T>
  absl::StatusOr<T> Noted(absl::StatusOr<T> result, absl::string_view method,
                          const AccessControl::Permit& permit) const;

  static constexpr char kService[] = "/hpo.v1.WorkerService/";

  WorkerApi& api_;
  const StudyQueries& queries_;
  AccessControl& access_;
  SessionOwners owners_;
  SessionStreams streams_;
};

}  // namespace hpo::server
