// Where a program listens, and whether that needs TLS: plaintext is spoken only where no other
// machine can listen in, on a loopback address or a unix socket.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

struct ListenAddress {
  std::string host;       // "127.0.0.1", "::1", "localhost"; empty for a unix socket
  int port = 0;           // 0: any free one
  std::string unix_path;  // empty for TCP
  bool operator==(const ListenAddress&) const = default;

  bool IsUnix() const { return !unix_path.empty(); }
  bool IsLoopback() const;
};

// "127.0.0.1:50051", "[::1]:0", "localhost:50051", "0.0.0.0:50051", "unix:/run/hpo.sock".
//   InvalidArgument  anything else, such as a name of a host other than localhost
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Whether connections to `address` need TLS: other machines can reach it, or it is a loopback
// address and `on_loopback` says so.
bool NeedsTls(const ListenAddress& address, bool on_loopback);

// As gRPC and people write it.
std::string FormatListenAddress(const ListenAddress& address);

// Whether a server could listen at `address` now.
//   Unavailable         "127.0.0.1:50051 is in use", or what else the system says
//   FailedPrecondition  a file that is no socket has the name of the unix socket
absl::Status CheckFree(const ListenAddress& address);

// A listening socket, which the caller closes; a port of 0 becomes the real one. A unix socket is
// its owner's alone, and replaces one that nobody answers on.
//   as CheckFree
absl::StatusOr<int> BindAndListen(ListenAddress& address);

}  // namespace hpo
