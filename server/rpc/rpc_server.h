// The gRPC server: its services, health and reflection, on one address. Raises the process' limit
// of descriptors as far as it may, and bounds connections by it (connection_acceptor.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/api/admin_api.h"
#include "server/api/fleet_api.h"
#include "server/api/study_api.h"
#include "server/api/worker_api.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/connection_acceptor.h"
#include "server/rpc/fleet_service.h"
#include "server/rpc/listen_address.h"
#include "server/rpc/optuna_service.h"
#include "server/rpc/study_service.h"
#include "server/rpc/worker_service.h"

namespace hpo::server {

// Serves from Start until Shutdown or destruction, on gRPC's own threads. Long polls and watches
// hold one thread each; the pool grows with them, so that they never starve other calls.
class RpcServer {
 public:
  // The apis outlive the server.
  //   Unavailable  the address is in use, or the system refuses it
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const ListenAddress& address,
                                                          StudyApi& studies, WorkerApi& workers,
                                                          AdminApi& admin, FleetApi& fleet,
                                                          OptunaApi& optuna);
  RpcServer(const RpcServer&) = delete;
  ~RpcServer();

  // As clients write it, with the real port.
  const std::string& address() const { return address_; }

  // What health checks answer; calls work as before. After StopAdvertising it stays NOT_SERVING.
  void SetServing(bool serving);
  void StopAdvertising();

  // Takes no new calls, lets those in flight end for up to `grace`, then cancels them. Idempotent.
  void Shutdown(absl::Duration grace);

 private:
  RpcServer(StudyApi& studies, WorkerApi& workers, AdminApi& admin, FleetApi& fleet,
            OptunaApi& optuna)
      : study_service_(studies),
        worker_service_(workers),
        admin_service_(admin),
        fleet_service_(fleet),
        optuna_service_(optuna) {}

  StudyServiceImpl study_service_;
  WorkerServiceImpl worker_service_;
  AdminServiceImpl admin_service_;
  FleetServiceImpl fleet_service_;
  OptunaServiceImpl optuna_service_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::atomic<bool> advertised_ = true;
};

}  // namespace hpo::server
