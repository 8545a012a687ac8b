#include "worker/agent/session/grpc_coordinator_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "grpcpp/grpcpp.h"
#include "hpo/v1/worker.grpc.pb.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/time_proto.h"
#include "proto/convert/trial_proto.h"
#include "proto/convert/worker_proto.h"
#include "worker/agent/session/convert_worker.h"
#include "worker/agent/session/session_stream.h"

namespace hpo::agent {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

namespace {

constexpr absl::Duration kHeartbeatDeadline = absl::Seconds(5);
constexpr absl::Duration kReportDeadline = absl::Seconds(5);
constexpr absl::Duration kFinishDeadline = absl::Seconds(15);
constexpr absl::Duration kReleaseDeadline = absl::Seconds(5);
constexpr absl::Duration kRegisterDeadline = absl::Seconds(15);
constexpr absl::Duration kListDeadline = absl::Seconds(15);
// On top of the time that an acquire waits on the server.
constexpr absl::Duration kAcquireMargin = absl::Seconds(10);
constexpr absl::Duration kCancelCheck = absl::Milliseconds(100);
constexpr int kStudiesPerPage = 100;

// Covers a lost connection within a call; a longer absence is the caller's to handle and to tell.
constexpr char kServiceConfig[] = R"({
  "methodConfig": [{
    "name": [{"service": "hpo.v1.WorkerService"}],
    "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s",
                    "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}
  }]
})";

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  // The server is on this machine, or behind a forwarder of this process: a proxy of the
  // environment is for others.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // A connection of its own: by default gRPC would share one between equal channels, and heartbeats
  // would queue behind everything else.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
}

class GrpcCoordinatorClient final : public CoordinatorClient {
 public:
  explicit GrpcCoordinatorClient(const tls::ServerRoute& route)
      : dialed_(route.dialed),
        shown_(route.shown),
        channel_(MakeChannel(route.dialed)),
        workers_(v1::WorkerService::NewStub(channel_)) {}

  absl::StatusOr<Registration> RegisterWorker(const WorkerFacts& facts,
                                              const std::string& predecessor) override {
    v1::RegisterWorkerRequest request = ToProto(facts);
    request.set_predecessor(predecessor);
    HPO_ASSIGN_OR_RETURN(const auto response,
                         Call(&Workers::RegisterWorker, kRegisterDeadline, request));
    return FromProto(response);
  }

  absl::StatusOr<AcquireResult> AcquireTrial(const std::string& session,
                                             const std::string& request_id, absl::Duration wait,
                                             Bytes capacity,
                                             const std::function<bool()>& cancelled) override {
    v1::AcquireTrialRequest request;
    request.set_session(session);
    request.set_request_id(request_id);
    *request.mutable_wait() = ToProto(wait);
    request.set_capacity_bytes(capacity.count);
    v1::AcquireTrialResponse response;
    HPO_RETURN_IF_ERROR(
        LongPoll(&Workers::AsyncAcquireTrial, request, wait + kAcquireMargin, cancelled, response));
    return FromProto(response);
  }

  absl::StatusOr<HeartbeatResult> Heartbeat(const std::string& session,
                                            const std::vector<LeaseBeat>& beats, Bytes capacity,
                                            const std::string& notice, bool leaving) override {
    if (!leaving) stream_.Keep(session);
    v1::HeartbeatRequest request;
    request.set_leaving(leaving);
    request.set_session(session);
    request.set_notice(notice);
    request.set_capacity_bytes(capacity.count);
    for (const LeaseBeat& beat : beats) {
      *request.add_leases() = ToProto(beat);
    }
    HPO_ASSIGN_OR_RETURN(const auto response,
                         Call(&Workers::Heartbeat, kHeartbeatDeadline, request));
    return FromProto(response);
  }

  absl::StatusOr<ReportResult> ReportMeasurements(const std::string& session,
                                                  const AttemptReport& report) override {
    v1::ReportMeasurementsRequest request = ToProto(report);
    request.set_session(session);
    HPO_ASSIGN_OR_RETURN(const auto response,
                         Call(&Workers::ReportMeasurements, kReportDeadline, request));
    return FromProto(response);
  }

  absl::StatusOr<FinishResult> FinishTrial(const std::string& session,
                                           const std::string& request_id,
                                           const FinishRequest& finish) override {
    v1::FinishTrialRequest request = ToProto(finish);
    request.set_session(session);
    request.set_request_id(request_id);
    HPO_ASSIGN_OR_RETURN(const auto response,
                         Call(&Workers::FinishTrial, kFinishDeadline, request));
    return FromProto(response);
  }

  absl::StatusOr<TrialState> ReleaseTrial(const std::string& session, const std::string& request_id,
                                          const TrialRelease& release) override {
    v1::ReleaseTrialRequest request = ToProto(release);
    request.set_session(session);
    request.set_request_id(request_id);
    HPO_ASSIGN_OR_RETURN(const auto response,
                         Call(&Workers::ReleaseTrial, kReleaseDeadline, request));
    return FromProto(response.state());
  }

  absl::StatusOr<std::optional<Preflight>> AcquirePreflight(
      const std::string& session, absl::Duration wait,
      const std::function<bool()>& cancelled) override {
    v1::AcquirePreflightRequest request;
    request.set_session(session);
    *request.mutable_wait() = ToProto(wait);
    v1::AcquirePreflightResponse response;
    HPO_RETURN_IF_ERROR(LongPoll(&Workers::AsyncAcquirePreflight, request, wait + kAcquireMargin,
                                 cancelled, response));
    return FromProto(response);
  }

  absl::Status ReportPreflight(const std::string& session, const PreflightReport& report) override {
    v1::ReportPreflightRequest request = ToProto(report);
    request.set_session(session);
    return Call(&Workers::ReportPreflight, kReportDeadline, request).status();
  }

  absl::StatusOr<std::vector<StudyData>> ListStudyData() override {
    std::vector<StudyData> data;
    v1::ListServedStudiesRequest request;
    request.set_page_size(kStudiesPerPage);
    do {
      HPO_ASSIGN_OR_RETURN(const auto response,
                           Call(&Workers::ListServedStudies, kListDeadline, request));
      for (const v1::ServedStudy& study : response.studies()) data.push_back(FromProto(study));
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return data;
  }

 private:
  using Workers = v1::WorkerService::Stub;

  // The answer to one call.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Workers::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                                absl::Duration deadline, const Request& request) {
    grpc::ClientContext context;
    SetDeadline(context, deadline);
    Response response;
    HPO_RETURN_IF_ERROR(StatusOf(((*workers_).*method)(&context, request, &response)));
    return response;
  }

  // A call that waits on the server, and that `cancelled` can end.
  template <typename Request, typename Response>
  absl::Status LongPoll(std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (
                            Workers::*method)(grpc::ClientContext*, const Request&,
                                              grpc::CompletionQueue*),
                        const Request& request, absl::Duration timeout,
                        const std::function<bool()>& cancelled, Response& response) {
    grpc::ClientContext context;
    SetDeadline(context, timeout);
    grpc::CompletionQueue queue;
    grpc::Status status;
    const auto call = ((*workers_).*method)(&context, request, &queue);
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    const auto check = absl::ToChronoMilliseconds(kCancelCheck);
    while (queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + check) ==
           grpc::CompletionQueue::TIMEOUT) {
      if (cancelled()) context.TryCancel();
    }
    return StatusOf(status);
  }

  // gRPC's words name the address that was dialed, which says nothing where a forwarder is behind
  // it.
  absl::Status StatusOf(const grpc::Status& status) const {
    const absl::Status error = FromGrpc(status);
    if (error.ok() || dialed_ == shown_) return error;
    return absl::Status(error.code(), absl::StrReplaceAll(error.message(), {{dialed_, shown_}}));
  }

  const std::string dialed_;
  const std::string shown_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  SessionStream stream_{*workers_};
};

}  // namespace

std::unique_ptr<CoordinatorClient> ConnectCoordinator(const tls::ServerRoute& route) {
  return std::make_unique<GrpcCoordinatorClient>(route);
}

}  // namespace hpo::agent
