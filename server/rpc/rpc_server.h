// The gRPC server: its services, health and reflection, on one address or several. Raises the
// process' limit of descriptors as far as it may, and bounds connections by it
// (connection_acceptor.h). Where other machines can connect, TLS admits them (tls_gate.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_line/listen_address.h"
#include "grpcpp/grpcpp.h"
#include "server/analysis/analysis_api.h"
#include "server/api/admin_api.h"
#include "server/api/fleet_api.h"
#include "server/api/study_api.h"
#include "server/api/worker_api.h"
#include "server/gate/connection_acceptor.h"
#include "server/gate/tls_gate.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/analysis_service.h"
#include "server/rpc/fleet_service.h"
#include "server/rpc/optuna_service.h"
#include "server/rpc/study_service.h"
#include "server/rpc/worker_service.h"

namespace hpo::server {

struct RpcOptions {
  // The first one is the server's address, which people see.
  std::vector<ListenAddress> listen;
  // Speak TLS at the addresses that need it (NeedsTls); nullopt: plaintext at all.
  std::optional<GateOptions> tls;
  // TLS at loopback addresses, too; a unix socket never has it.
  bool tls_on_loopback = false;
};

// What the services call. All outlive the server.
struct RpcApis {
  StudyApi& studies;
  WorkerApi& workers;
  AdminApi& admin;
  FleetApi& fleet;
  const AnalysisApi& analysis;
  OptunaApi& optuna;
  AccessControl& access;
  const TokenRegistry& tokens;
};

// Serves from Start until Shutdown or destruction, on gRPC's own threads. Long polls and watches
// hold one thread each; the pool grows with them, so that they never starve other calls.
class RpcServer {
 public:
  //   Unavailable  an address is in use, or the system refuses it
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(RpcOptions options, const RpcApis& apis);
  RpcServer(const RpcServer&) = delete;
  ~RpcServer();

  // As clients write it, with the real port.
  const std::string& address() const { return address_; }
  // All that it listens on, with the real ports.
  std::vector<ListenAddress> addresses() const;

  // The services for callers within the process, whom PeerOf (rpc_macros.h) names.
  std::shared_ptr<grpc::Channel> ChannelWithin();

  // Closes TLS connections whose token is no longer valid, but `spared`: the next call closes it.
  void CloseInvalid(uint64_t spared = 0);

  // What health checks answer; calls work as before. After StopAdvertising it stays NOT_SERVING.
  void SetServing(bool serving);
  void StopAdvertising();

  // Takes no new calls, lets those in flight end for up to `grace`, then cancels them. Idempotent.
  void Shutdown(absl::Duration grace);

 private:
  explicit RpcServer(const RpcApis& apis)
      : study_service_(apis.studies, apis.access),
        worker_service_(apis.workers, apis.studies.queries(), apis.access),
        admin_service_(apis.admin, apis.access),
        fleet_service_(apis.fleet, apis.access),
        analysis_service_(apis.analysis, apis.access),
        optuna_service_(apis.optuna, apis.access) {}

  absl::Status Build(const RpcApis& apis);

  StudyServiceImpl study_service_;
  WorkerServiceImpl worker_service_;
  AdminServiceImpl admin_service_;
  FleetServiceImpl fleet_service_;
  AnalysisServiceImpl analysis_service_;
  OptunaServiceImpl optuna_service_;
  std::vector<std::unique_ptr<ConnectionAcceptor>> acceptors_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TlsGate> gate_;  // null: no TLS
  std::string address_;
  std::atomic<bool> advertised_ = true;
};

}  // namespace hpo::server
