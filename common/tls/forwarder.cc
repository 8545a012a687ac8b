#include "common/tls/forwarder.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace hpo::tls {
namespace {

// A listening socket of the abstract namespace, which no file stands for.
absl::StatusOr<int> ListenAbstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor >= 0 && bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      listen(descriptor, SOMAXCONN) == 0) {
    return descriptor;
  }
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  return absl::UnavailableError(
      absl::StrCat("cannot open a unix socket for TLS: ", std::strerror(error)));
}

bool IsOfThisProcess(int connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == getpid();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Forwarder>> Forwarder::StartForThisProcess(
    ForwarderOptions options) {
  const std::string name = absl::StrCat("hpo-", RandomId());
  HPO_ASSIGN_OR_RETURN(const int listener, ListenAbstract(name));
  return std::unique_ptr<Forwarder>(new Forwarder(listener, absl::StrCat("unix-abstract:", name),
                                                  /*own_process=*/true, std::move(options)));
}

std::unique_ptr<Forwarder> Forwarder::Start(int listener, ForwarderOptions options) {
  return std::unique_ptr<Forwarder>(
      new Forwarder(listener, "", /*own_process=*/false, std::move(options)));
}

Forwarder::Forwarder(int listener, std::string address, bool own_process, ForwarderOptions options)
    : address_(std::move(address)),
      own_process_(own_process),
      options_(std::move(options)),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

Forwarder::~Forwarder() {
  eventfd_write(wake_, 1);
  thread_.join();
  close(listener_);
  close(wake_);
}

absl::Status Forwarder::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void Forwarder::Run() {
  BlockBrokenPipeSignal();
  for (;;) {
    pollfd events[] = {{.fd = wake_, .events = POLLIN, .revents = 0},
                       {.fd = listener_, .events = POLLIN, .revents = 0}};
    poll(events, 2, -1);
    if (events[0].revents != 0) return;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) Forward(connection);
  }
}

absl::StatusOr<Dialed> Forwarder::DialNow() const {
  HPO_ASSIGN_OR_RETURN(const JoinString join, options_.join());
  return Dial(join, options_.dial_timeout);
}

void Forwarder::Forward(int connection) {
  if (own_process_ && !IsOfThisProcess(connection)) {
    close(connection);
    return;
  }
  absl::StatusOr<Dialed> dialed = DialNow();
  Note(dialed.status());
  if (!dialed.ok()) {
    close(connection);
    return;
  }
  relay_.Add(
      {.tls = std::move(dialed->tls), .tls_socket = dialed->socket, .plain_socket = connection});
}

absl::Status Forwarder::Check() {
  absl::Status result;
  std::thread dialing([this, &result] {
    BlockBrokenPipeSignal();
    const absl::StatusOr<Dialed> dialed = DialNow();
    result = dialed.status();
    if (!dialed.ok()) return;
    close(dialed->socket);
    absl::MutexLock lock(&mutex_);
    was_admitted_ = true;
  });
  dialing.join();
  return result;
}

void Forwarder::Note(absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    was_admitted_ = was_admitted_ || status.ok();
    if (absl::IsUnauthenticated(status) && was_admitted_) {
      status = absl::UnavailableError(status.message());
    }
    if (status == status_) return;
    status_ = status;
  }
  if (options_.on_change) options_.on_change(status);
}

}  // namespace hpo::tls
