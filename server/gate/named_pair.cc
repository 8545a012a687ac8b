#include "server/gate/named_pair.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

constexpr int kMostNames = 4;  // tried for a connection

}  // namespace

absl::StatusOr<std::pair<int, int>> NamedPair(const std::string& name) {
  std::array<int, 2> ends{};
  constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const auto failed = [](const char* call, int error) {
    return absl::UnavailableError(
        absl::StrCat("the server cannot serve the connection: ", call, ": ", std::strerror(error)));
  };
  if (socketpair(AF_UNIX, kKind, 0, ends.data()) != 0) return failed("socketpair", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof(address.sun_path) - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(ends[0], reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    return std::pair(ends[0], ends[1]);
  }
  const int error = errno;
  close(ends[0]);
  close(ends[1]);
  if (error != EADDRINUSE) return failed("bind", error);
  return absl::AlreadyExistsError("another program has bound the name of the connection");
}

absl::StatusOr<std::pair<int, int>> PairOfFreeName(
    absl::FunctionRef<absl::StatusOr<std::string>()> next_name) {
  absl::StatusOr<std::pair<int, int>> ends;
  for (int i = 0; i < kMostNames; ++i) {
    HPO_ASSIGN_OR_RETURN(const std::string name, next_name());
    ends = NamedPair(name);
    if (!absl::IsAlreadyExists(ends.status())) break;
  }
  return ends;
}

}  // namespace hpo::server
