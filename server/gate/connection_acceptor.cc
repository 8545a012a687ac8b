#include "server/gate/connection_acceptor.h"

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
#include "common/base/status.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr int kReserved = 256;  // for the database, files and gRPC itself
constexpr int kMostConnections = 10'000;
constexpr absl::Duration kRestAfterFailure = absl::Milliseconds(100);
constexpr absl::Duration kTimeForReason = absl::Seconds(1);
constexpr size_t kMostRefused = 16;
constexpr size_t kMostReceived = 64 << 10;  // before the first call of one that is sent away
constexpr absl::Duration kBetweenLines = absl::Minutes(1);

// HTTP/2 (RFC 9113), as much of it as it takes to end the first call of a client with a status.
constexpr size_t kPrefaceBytes = 24;
constexpr size_t kHeadBytes = 9;
constexpr char kHeaders = 1;
constexpr char kSettings = 4;
constexpr char kGoAway = 7;

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string Frame(char type, char flags, uint32_t stream, const std::string& payload) {
  const std::string head = {0, static_cast<char>(payload.size() >> 8),
                            static_cast<char>(payload.size()), type, flags};
  return head + BigEndian(stream) + payload;
}

// A header field that no table has (RFC 7541, 6.2.2); both texts are shorter than 127 bytes.
std::string HeaderField(const std::string& name, const std::string& value) {
  std::string field(1, '\0');
  for (const std::string& text : {name, value}) {
    field += static_cast<char>(text.size());
    field += text;
  }
  return field;
}

// The end of the call on `stream`: RESOURCE_EXHAUSTED and `why`. Then that of the connection.
std::string RefusalOf(uint32_t stream, const std::string& why) {
  constexpr char kStatus200[] = "\x88";
  constexpr char kEndsStreamAndHeaders = 0x1 | 0x4;
  constexpr char kEnhanceYourCalm = 0x0b;
  std::string text;
  if (stream > 0) {
    text = Frame(kHeaders, kEndsStreamAndHeaders, stream,
                 absl::StrCat(kStatus200, HeaderField("content-type", "application/grpc"),
                              HeaderField("grpc-status", "8"), HeaderField("grpc-message", why)));
  }
  return text +
         Frame(kGoAway, 0, 0, BigEndian(stream) + std::string(3, '\0') + kEnhanceYourCalm + why);
}

// The stream of the first call in what a client has sent; 0: none yet.
uint32_t FirstCall(const std::string& received) {
  const auto byte = [&received](size_t at) {
    return static_cast<uint32_t>(static_cast<unsigned char>(received[at]));
  };
  for (size_t at = kPrefaceBytes; at + kHeadBytes <= received.size();) {
    const size_t size = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    if (received[at + 3] == kHeaders) {
      return (byte(at + 5) & 0x7f) << 24 | byte(at + 6) << 16 | byte(at + 7) << 8 | byte(at + 8);
    }
    at += kHeadBytes + size;
  }
  return 0;
}

void Send(int connection, const std::string& text) {
  send(connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
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
  const int reserved = std::min(kReserved, descriptors - descriptors / 3);
  return std::clamp(descriptors - reserved, 1, kMostConnections);
}

std::string GoodbyeOf(const std::string& why) {
  return Frame(kSettings, 0, 0, "") + RefusalOf(0, why);
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

void ConnectionAcceptor::Start(Serve serve, Refusal refusal) {
  serve_ = std::move(serve);
  refusal_ = refusal;
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
    std::vector<pollfd> events = {{.fd = wake_, .events = POLLIN, .revents = 0},
                                  {.fd = rests ? -1 : listener_, .events = POLLIN, .revents = 0}};
    for (const Refused& one : refused_) {
      events.push_back({.fd = one.answered ? -1 : one.descriptor, .events = POLLIN, .revents = 0});
    }
    poll(events.data(), events.size(),
         waits ? static_cast<int>(absl::ToInt64Milliseconds(kRestAfterFailure)) : -1);
    if (events[0].revents != 0) return;
    for (size_t i = 2; i < events.size(); ++i) {
      if (events[i].revents != 0) Answer(refused_[i - 2]);
    }
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
    if (connection >= 0 && refusal_ == Refusal::kClose) {
      close(connection);
    } else if (connection >= 0) {
      // There is no time to wait for its call.
      Send(connection, GoodbyeOf("hpo-server has no file descriptor left; try again later"));
      close(connection);
    }
  }
  if (spare_ < 0) spare_ = OpenSpare();
  resting_until_ = clock_.Monotonic() + kRestAfterFailure;
  if (const int64_t count = CountToTell(); count > 0) {
    spdlog::error("new connections are refused, {} since the last such line: accept: {}", count,
                  std::strerror(error));
  }
}

int64_t ConnectionAcceptor::CountToTell() {
  ++num_untold_;
  if (clock_.Monotonic() - told_ < kBetweenLines) return 0;
  told_ = clock_.Monotonic();
  return std::exchange(num_untold_, 0);
}

std::string ConnectionAcceptor::WhyFull() const {
  return absl::StrCat(
      "hpo-server serves ", most_connections_,
      " connections, the most that its descriptor limit allows: try later, or raise "
      "ulimit -n");
}

void ConnectionAcceptor::Refuse(int connection) {
  if (refusal_ == Refusal::kClose) {
    close(connection);
    if (const int64_t count = CountToTell(); count > 0) {
      spdlog::error("{} connections are refused: {}", count, WhyFull());
    }
    return;
  }
  // A client makes its call once it has seen settings.
  Send(connection, Frame(kSettings, 0, 0, ""));
  if (refused_.size() == kMostRefused) {
    refused_.front().close_at = -absl::InfiniteDuration();
    CloseRefused(clock_.Monotonic());
  }
  refused_.push_back({.descriptor = connection,
                      .close_at = clock_.Monotonic() + kTimeForReason,
                      .received = "",
                      .answered = false});
  if (const int64_t count = CountToTell(); count > 0) {
    spdlog::error("{} connections are refused: {}", count, WhyFull());
  }
}

void ConnectionAcceptor::Answer(Refused& one) {
  char buffer[4096];
  const ssize_t count = recv(one.descriptor, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (count > 0) one.received.append(buffer, static_cast<size_t>(count));
  const uint32_t call = FirstCall(one.received);
  const bool over = count == 0 || one.received.size() > kMostReceived;
  if (call == 0 && !over) return;
  Send(one.descriptor, RefusalOf(call, WhyFull()));
  shutdown(one.descriptor, SHUT_WR);
  one.answered = true;
}

void ConnectionAcceptor::CloseRefused(absl::Duration until) {
  const auto over =
      std::stable_partition(refused_.begin(), refused_.end(),
                            [until](const Refused& one) { return one.close_at > until; });
  for (auto one = over; one != refused_.end(); ++one) {
    if (!one->answered) Send(one->descriptor, RefusalOf(0, WhyFull()));
    close(one->descriptor);
  }
  refused_.erase(over, refused_.end());
}

}  // namespace hpo::server
