// The gRPC implementation of CoordinatorClient.
#pragma once

#include <memory>

#include "common/tls/server_route.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

// A client with a connection of its own to the server. Never blocks: calls fail with Unavailable
// until it answers.
std::unique_ptr<CoordinatorClient> ConnectCoordinator(const tls::ServerRoute& route);

}  // namespace hpo::agent
