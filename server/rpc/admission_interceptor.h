// Brings the services of gRPC itself, health and reflection, under the table of roles and the
// limits of clients. Each method of ours asks AccessControl by itself (rpc_macros.h); those cannot.
#pragma once

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/access/access_control.h"

namespace hpo::server {

// `access` outlives the server. A call that is not allowed is cancelled.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeAdmissionInterceptors(
    AccessControl& access);

}  // namespace hpo::server
