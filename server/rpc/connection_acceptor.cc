#include "server/rpc/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

constexpr int kReserved = 256;  // for the database, files and gRPC itself
constexpr int kMostConnections = 10'000;
constexpr absl::Duration kRestAfterFailure = absl::Milliseconds(100);
constexpr absl::Duration kTimeForReason = absl::Seconds(1);
constexpr size_t kMostRefused = 16;
constexpr absl::Duration kBetweenLines = absl::Minutes(1);

// HTTP/2 frames (RFC 9113, 6.5 and 6.8): empty settings, then GOAWAY with ENHANCE_YOUR_CALM and a
// text, which gRPC's clients show.
std::string GoAway(const std::string& why) {
  const auto frame = [](char type, const std::string& payload) {
    std::string head(9, '\0');
    head[1] = static_cast<char>(payload.size() >> 8);
    head[2] = static_cast<char>(payload.size() & 0xff);
    head[3] = type;
    return head + payload;
  };
  constexpr char kSettings = 4;
  constexpr char kGoAway = 7;
  constexpr char kEnhanceYourCalm = 0x0b;
  std::string payload(8, '\0');  // no stream was served
  payload[7] = kEnhanceYourCalm;
  return frame(kSettings, "") + frame(kGoAway, payload + why);
}

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

ino_t InodeOf(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

int RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, kMostDescriptors);
  if (limit.rlim_cur < wanted) {
    const rlimit raised{wanted, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit.rlim_cur = wanted;
  }
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMostDescriptors));
}

int ConnectionsFor(int descriptors) {
  const int reserved = std::min(kReserved, descriptors / 2);
  return std::clamp(descriptors - reserved, 1, kMostConnections);
}

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(
    const ListenAddress& address, int most_connections) {
  ListenAddress bound = address;
  HPO_ASSIGN_OR_RETURN(const int listener, BindAndListen(bound));
  return std::unique_ptr<ConnectionAcceptor>(
      new ConnectionAcceptor(std::move(bound), listener, most_connections));
}

ConnectionAcceptor::ConnectionAcceptor(ListenAddress address, int listener, int most_connections)
    : address_(std::move(address)),
      listener_(listener),
      most_connections_(most_connections),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(OpenSpare()) {}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  if (wake_ >= 0) close(wake_);
  if (spare_ >= 0) close(spare_);
}

void ConnectionAcceptor::Start(Serve serve) {
  serve_ = std::move(serve);
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  if (listener_ < 0) return;
  close(std::exchange(listener_, -1));
  if (address_.IsUnix()) unlink(address_.unix_path.c_str());
  CloseRefused(absl::InfiniteDuration());
}

void ConnectionAcceptor::Run() {
  for (;;) {
    const absl::Duration now = clock_.Monotonic();
    CloseRefused(now);
    const bool rests = now < resting_until_;
    const bool waits = rests || !refused_.empty();
    pollfd events[] = {{.fd = wake_, .events = POLLIN, .revents = 0},
                       {.fd = rests ? -1 : listener_, .events = POLLIN, .revents = 0}};
    poll(events, 2, waits ? static_cast<int>(absl::ToInt64Milliseconds(kRestAfterFailure)) : -1);
    if (events[0].revents != 0) return;
    if (events[1].revents != 0) AcceptOne();
  }
}

void ConnectionAcceptor::AcceptOne() {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    TakeFailure(errno);
    return;
  }
  if (!HasRoom()) {
    Refuse(connection);
    return;
  }
  const int on = 1;  // fails on a unix socket, which has no delay
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  served_.push_back({connection, InodeOf(connection)});
  serve_(listener_, connection);
}

// Nobody tells when gRPC has closed a connection, so it is looked at when it matters.
bool ConnectionAcceptor::HasRoom() {
  const auto most = static_cast<size_t>(most_connections_);
  if (served_.size() < most) return true;
  std::erase_if(served_,
                [](const Served& served) { return InodeOf(served.descriptor) != served.inode; });
  return served_.size() < most;
}

void ConnectionAcceptor::TakeFailure(int error) {
  if (error == EINTR || error == EAGAIN || error == ECONNABORTED) return;
  const bool exhausted = error == EMFILE || error == ENFILE;
  if (exhausted && spare_ >= 0) {
    close(std::exchange(spare_, -1));
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      const std::string text = GoAway("hpo-server has no file descriptor left; try again later");
      send(connection, text.data(), text.size(), MSG_NOSIGNAL);
      close(connection);
    }
  }
  if (spare_ < 0) spare_ = OpenSpare();
  resting_until_ = clock_.Monotonic() + kRestAfterFailure;
  ++num_untold_;
  if (clock_.Monotonic() - told_ < kBetweenLines) return;
  told_ = clock_.Monotonic();
  spdlog::error("new connections are refused, {} since the last such line: accept: {}",
                std::exchange(num_untold_, 0), std::strerror(error));
}

void ConnectionAcceptor::Refuse(int connection) {
  const std::string why = absl::StrCat("hpo-server serves ", most_connections_,
                                       " connections, the most that its limit of file descriptors "
                                       "allows; try again later, or raise it (ulimit -n)");
  const std::string text = GoAway(why);
  send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  shutdown(connection, SHUT_WR);
  if (refused_.size() == kMostRefused) {
    close(refused_.front().descriptor);
    refused_.erase(refused_.begin());
  }
  refused_.push_back({connection, clock_.Monotonic() + kTimeForReason});
  ++num_untold_;
  if (clock_.Monotonic() - told_ < kBetweenLines) return;
  told_ = clock_.Monotonic();
  spdlog::error("{} connections are refused: {}", std::exchange(num_untold_, 0), why);
}

void ConnectionAcceptor::CloseRefused(absl::Duration until) {
  const auto over = std::partition(refused_.begin(), refused_.end(),
                                   [until](const Refused& one) { return one.close_at > until; });
  for (auto one = over; one != refused_.end(); ++one) close(one->descriptor);
  refused_.erase(over, refused_.end());
}

}  // namespace hpo
