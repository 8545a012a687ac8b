#include "common/command_line/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hpo {
namespace {

constexpr absl::string_view kExpected =
    "expected IP:PORT such as 127.0.0.1:50051, or unix:/path/to/socket";

bool IsIpAddress(const std::string& host) {
  in_addr v4;
  in6_addr v6;
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

bool IsLoopbackHost(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<ListenAddress> ParseUnix(absl::string_view path) {
  if (path.empty() || path[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen: expected unix:/absolute/path, got 'unix:", path, "'"));
  }
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("--listen: expected a socket path shorter than ",
                                                   sizeof(sockaddr_un::sun_path), " bytes, got ",
                                                   path.size()));
  }
  return ListenAddress{.unix_path = std::string(path)};
}

// A listening socket, or the negative errno of the first step that failed.
int Listen(int family, const sockaddr* address, socklen_t size) {
  const int descriptor = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -errno;
  const int on = 1;  // a port in TIME_WAIT is free
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // The mode that bind gives a unix socket's file.
  fchmod(descriptor, S_IRUSR | S_IWUSR);
  if (bind(descriptor, address, size) == 0 && listen(descriptor, SOMAXCONN) == 0) return descriptor;
  const int error = errno;
  close(descriptor);
  return -error;
}

int ListenTcp(const ListenAddress& address) {
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<uint16_t>(address.port));
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    return Listen(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(address.port));
  inet_pton(AF_INET, host.c_str(), &v4.sin_addr);
  return Listen(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

// A socket file that somebody answers on is in use; a left-over one is not.
bool SomebodyAnswers(const std::string& unix_path) {
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  const sockaddr_un address = UnixAddress(unix_path);
  return connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// Whether something else than a socket is there, which must not be deleted.
bool IsOtherFile(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode);
}

int ListenUnix(const std::string& path) {
  if (SomebodyAnswers(path)) return -EADDRINUSE;
  if (IsOtherFile(path)) return -EEXIST;
  unlink(path.c_str());
  const sockaddr_un address = UnixAddress(path);
  return Listen(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

int PortOf(int descriptor) {
  sockaddr_in6 bound{};  // the port of an IPv4 address lies at the same place
  socklen_t size = sizeof(bound);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.sin6_port);
}

absl::Status CannotListen(const ListenAddress& address, int error) {
  const std::string name = FormatListenAddress(address);
  if (error == EADDRINUSE) return absl::UnavailableError(absl::StrCat(name, " is in use"));
  if (error == EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", name, ": a file that is no socket has this name"));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", name, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) return ParseUnix(rest);
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("--listen: ", kExpected, ", got '", text, "'"));
  }
  absl::string_view host = text.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  if (host != "localhost" && !IsIpAddress(std::string(host))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: ", kExpected, ", got '", text,
        "'; 0.0.0.0 listens on every address, and --advertise names the host for clients"));
  }
  return ListenAddress{.host = std::string(host), .port = port};
}

bool ListenAddress::IsLoopback() const { return !IsUnix() && IsLoopbackHost(host); }

bool NeedsTls(const ListenAddress& address, bool on_loopback) {
  if (address.IsUnix()) return false;
  return on_loopback || !address.IsLoopback();
}

std::string FormatListenAddress(const ListenAddress& address) {
  if (address.IsUnix()) return absl::StrCat("unix:", address.unix_path);
  if (absl::StrContains(address.host, ':')) {
    return absl::StrCat("[", address.host, "]:", address.port);
  }
  return absl::StrCat(address.host, ":", address.port);
}

absl::Status CheckFree(const ListenAddress& address) {
  if (address.IsUnix()) {
    if (SomebodyAnswers(address.unix_path)) return CannotListen(address, EADDRINUSE);
    return IsOtherFile(address.unix_path) ? CannotListen(address, EEXIST) : absl::OkStatus();
  }
  if (address.port == 0) return absl::OkStatus();
  const int descriptor = ListenTcp(address);
  if (descriptor < 0) return CannotListen(address, -descriptor);
  close(descriptor);
  return absl::OkStatus();
}

absl::StatusOr<int> BindAndListen(ListenAddress& address) {
  const int descriptor = address.IsUnix() ? ListenUnix(address.unix_path) : ListenTcp(address);
  if (descriptor < 0) return CannotListen(address, -descriptor);
  if (!address.IsUnix()) address.port = PortOf(descriptor);
  return descriptor;
}

}  // namespace hpo
