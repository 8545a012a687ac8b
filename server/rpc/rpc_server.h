// The gRPC server: both services, health and reflection, on one address. Raises the process' limit
// of descriptors as far as it may, and bounds connections by it (connection_acceptor.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/api/study_api.h"
#include "server/api/worker_api.h"
#include "server/rpc/connection_acceptor.h"
#include "server/rpc/listen_address.h"
#include "server/rpc/study_service.h"
#include "server/rpc/worker_service.h"

namespace hpo {

// Serves from Start until Shutdown or destruction, on gRPC's own threads. Long polls and watches
// hold one thread each; the pool grows with them, so that they never starve other calls.
class RpcServer {
 public:
  // Both apis outlive the server.
  //   Unavailable  the address is in use, or the system refuses it
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const ListenAddress& address,
                                                          StudyApi& studies, WorkerApi& workers);
  RpcServer(const RpcServer&) = delete;
  ~RpcServer();

  // As clients write it, with the real port.
  const std::string& address() const { return address_; }

  // Health checks answer NOT_SERVING from now on; calls still work.
  void StopAdvertising();

  // Takes no new calls, lets those in flight end for up to `grace`, then cancels them. Idempotent.
  void Shutdown(absl::Duration grace);

 private:
  RpcServer(StudyApi& studies, WorkerApi& workers)
      : study_service_(studies), worker_service_(workers) {}

  StudyServiceImpl study_service_;
  WorkerServiceImpl worker_service_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace hpo
