// Writes each call that changes something to the audit log, of every service: who, what, and how it
// ended. gRPC's interceptors see all calls, so no method can be forgotten.
#pragma once

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/access/access_control.h"

namespace hpo::server {

// `access` outlives the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeAuditInterceptors(
    AccessControl& access);

}  // namespace hpo::server
