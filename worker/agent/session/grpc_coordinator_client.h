// The gRPC implementation of CoordinatorClient.
#pragma once

#include <memory>
#include <string>

#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

// A client with a connection of its own to `server` ("host:port" or "unix:/path"). Never blocks:
// calls fail with Unavailable until the server answers.
std::unique_ptr<CoordinatorClient> ConnectCoordinator(const std::string& server);

}  // namespace hpo::agent
