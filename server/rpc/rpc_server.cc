#include "server/rpc/rpc_server.h"

#include <grpc/support/log.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr int kLargestMessageBytes = static_cast<int>(kMessageLimit.most);
// Clients of ours take no more than a request may have; Optuna's take any number of trials at once.
constexpr int kLargestAnswerBytes = static_cast<int>(kOptunaAnswerLimit.most + kMessageLimit.most);
// Every waiting worker and every watcher holds a thread; beyond this many, calls are refused with
// RESOURCE_EXHAUSTED rather than queued behind long polls.
constexpr int kMostThreads = 2048;
// Workers ping every 60 s, also while no call is under way; gRPC's default would cut them off.
constexpr int kShortestPingMilliseconds = 30'000;
// A connection that says nothing is closed; gRPC's default is two minutes.
constexpr int kHandshakeMilliseconds = 20'000;

// gRPC's own log, which is for people who debug it, goes where ours goes.
void LogGrpc(gpr_log_func_args* args) {
  const bool verbose = args->severity == GPR_LOG_SEVERITY_DEBUG;
  const auto level = verbose ? spdlog::level::trace : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", args->message);
}

void Configure(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kLargestMessageBytes);
  builder.SetMaxSendMessageSize(kLargestAnswerBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kShortestPingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  grpc::ResourceQuota quota("hpo-server");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const ListenAddress& address,
                                                            StudyApi& studies, WorkerApi& workers,
                                                            AdminApi& admin, FleetApi& fleet,
                                                            OptunaApi& optuna) {
  gpr_set_log_function(LogGrpc);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<RpcServer> server(new RpcServer(studies, workers, admin, fleet, optuna));
  HPO_ASSIGN_OR_RETURN(server->acceptor_,
                       ConnectionAcceptor::Listen(address, ConnectionsFor(RaiseDescriptorLimit())));
  grpc::ServerBuilder builder;
  Configure(builder);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server->connections_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  builder.RegisterService(&server->study_service_);
  builder.RegisterService(&server->worker_service_);
  builder.RegisterService(&server->admin_service_);
  builder.RegisterService(&server->fleet_service_);
  builder.RegisterService(&server->optuna_service_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot serve ", FormatListenAddress(address)));
  }
  server->address_ = FormatListenAddress(server->acceptor_->address());
  server->acceptor_->Start(
      [connections = server->connections_.get()](int listener, int connection) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
        parameters.listener_fd = listener;
        parameters.fd = connection;
        connections->HandleNewConnection(&parameters);
      });
  return server;
}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

void RpcServer::SetServing(bool serving) {
  if (auto* health = server_->GetHealthCheckService()) {
    health->SetServingStatus(serving && advertised_);
  }
}

void RpcServer::StopAdvertising() {
  advertised_ = false;
  SetServing(false);
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  acceptor_->Stop();
  worker_service_.EndStreams();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace hpo::server
