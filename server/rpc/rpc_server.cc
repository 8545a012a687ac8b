#include "server/rpc/rpc_server.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/limits.h"
#include "common/base/status.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "server/rpc/admission_interceptor.h"
#include "server/rpc/audit_interceptor.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr int kLargestMessageBytes = static_cast<int>(kMessageLimit.most);
// Clients of ours take no more than a request may have; Optuna's take any number of trials at once.
constexpr int kLargestAnswerBytes = static_cast<int>(kOptunaAnswerLimit.most + kMessageLimit.most);
// Every waiting worker and every watcher holds a thread; beyond this many, calls are refused with
// RESOURCE_EXHAUSTED rather than queued behind long polls. CallLimits stays below it.
constexpr int kMostThreads = 2048;
// Workers ping every 60 s, also while no call is under way; gRPC's default would cut them off.
constexpr int kShortestPingMilliseconds = 30'000;
// A connection that says nothing is closed; gRPC's default is two minutes.
constexpr int kHandshakeMilliseconds = 20'000;
// Calls at once on one connection; a client's further ones wait at the client.
constexpr int kMostStreams = 512;

// gRPC's own log, which is for people who debug it, goes where ours goes.
void LogGrpc(gpr_log_func_args* args) {
  const bool verbose = args->severity == GPR_LOG_SEVERITY_DEBUG;
  const auto level = verbose ? spdlog::level::trace : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", args->message);
}

void Configure(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kLargestMessageBytes);
  builder.SetMaxSendMessageSize(kLargestAnswerBytes);
  // A small message that becomes gigabytes when it is unpacked would pass the limit before it.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kShortestPingMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  grpc::ResourceQuota quota("hpo-server");
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
}

}  // namespace

absl::Status RpcServer::Build(const RpcApis& apis) {
  grpc::ServerBuilder builder;
  Configure(builder);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeAdmissionInterceptors(apis.access));
  interceptors.push_back(MakeAuditInterceptors(apis.access));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  builder.RegisterService(&study_service_);
  builder.RegisterService(&worker_service_);
  builder.RegisterService(&admin_service_);
  builder.RegisterService(&fleet_service_);
  builder.RegisterService(&analysis_service_);
  builder.RegisterService(&optuna_service_);
  server_ = builder.BuildAndStart();
  return server_ != nullptr ? absl::OkStatus() : absl::UnavailableError("cannot start gRPC");
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(RpcOptions options,
                                                            const RpcApis& apis) {
  gpr_set_log_function(LogGrpc);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<RpcServer> server(new RpcServer(apis));
  const bool has_tls = options.tls.has_value();
  // A connection with TLS has three descriptors.
  const int descriptors = RaiseDescriptorLimit();
  const int most =
      has_tls ? std::max(1, ConnectionsFor(descriptors) / 3) : ConnectionsFor(descriptors);
  for (const ListenAddress& address : options.listen) {
    HPO_ASSIGN_OR_RETURN(server->acceptors_.emplace_back(),
                         ConnectionAcceptor::Listen(address, most));
  }
  HPO_RETURN_IF_ERROR(server->Build(apis));
  const auto serve = [connections = server->connections_.get()](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = connection;
    connections->HandleNewConnection(&parameters);
  };
  if (has_tls) {
    GateOptions& gate = *options.tls;
    gate.most_pending = std::min(gate.most_pending, static_cast<size_t>(std::max(1, most / 4)));
    gate.most_connections = std::max(1, most - static_cast<int>(gate.most_pending));
    HPO_ASSIGN_OR_RETURN(server->gate_,
                         TlsGate::Create(*std::move(options.tls), apis.tokens, apis.access,
                                         [serve](int connection) { serve(-1, connection); }));
  }
  server->address_ = FormatListenAddress(server->acceptors_.front()->address());
  for (const auto& acceptor : server->acceptors_) {
    if (has_tls && NeedsTls(acceptor->address(), options.tls_on_loopback)) {
      acceptor->Start([gate = server->gate_.get()](int, int connection) { gate->Take(connection); },
                      ConnectionAcceptor::Refusal::kClose);
    } else {
      acceptor->Start(serve, ConnectionAcceptor::Refusal::kExplain);
    }
  }
  return server;
}

std::vector<ListenAddress> RpcServer::addresses() const {
  std::vector<ListenAddress> addresses;
  for (const auto& acceptor : acceptors_) addresses.push_back(acceptor->address());
  return addresses;
}

std::shared_ptr<grpc::Channel> RpcServer::ChannelWithin() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestAnswerBytes);
  return server_->InProcessChannel(arguments);
}

void RpcServer::CloseInvalid(uint64_t spared) {
  if (gate_ != nullptr) gate_->CloseInvalid(spared);
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
  for (const auto& acceptor : acceptors_) acceptor->Stop();
  worker_service_.EndStreams();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace hpo::server
