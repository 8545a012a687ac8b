// `hpo connect`: an address of this machine that leads to a server on another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct ConnectOptions {
  std::string listen = "127.0.0.1:50051";
  std::string address_file;         // gets the address once it can be used; empty: none
  std::optional<int64_t> end_with;  // ends with this process, its parent
};

// Forwards until a signal. Every program that can connect to the address has the rights of the join
// string: a unix socket is for this user alone.
//   InvalidArgument   there is no join string, or the address is not one of this machine
//   PermissionDenied  the server does not accept the join string (any longer)
absl::Status Connect(Session& session, const ConnectOptions& options);

}  // namespace hpo::cli
