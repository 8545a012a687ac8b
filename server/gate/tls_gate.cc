#include "server/gate/tls_gate.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/access/message_guard.h"
#include "server/gate/address_group.h"
#include "server/gate/connection_acceptor.h"
#include "server/gate/named_pair.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr uint64_t kWakeKey = 0;
constexpr int64_t kToleratedFactor = 2;  // of the limit of a message
constexpr int kLowPriority = 10;         // of nice(2)

// Refuses messages of a client that are too long.
std::function<bool(const char*, size_t)> GuardOf(AccessControl& access, const Caller& caller) {
  return [&access, caller, guard = MessageGuard()](const char* data, size_t size) mutable {
    const int64_t longest = guard.Take(data, size);
    if (longest <= kMessageLimit.most) return true;
    access.audit().WriteSparingly(
        {.event = "refused",
         .who = caller.name,
         .role = std::string(RoleName(caller.role)),
         .from = caller.from,
         .method = "",
         .what = "",
         .result = "RESOURCE_EXHAUSTED",
         .why = absl::StrCat("a message of ", longest, " bytes, and the most is ",
                             kMessageLimit.most)});
    // gRPC answers those that are a little too long, which it keeps in memory until then.
    return longest <= kToleratedFactor * kMessageLimit.most;
  };
}

}  // namespace

struct TlsGate::Handshake {
  uint64_t id = 0;
  int socket = -1;
  absl::Time deadline;
  VerifiedClient client;
  tls::SslPtr tls;
  ~Handshake() {
    if (socket >= 0) close(socket);
  }
};

absl::StatusOr<std::unique_ptr<TlsGate>> TlsGate::Create(GateOptions options,
                                                         const TokenRegistry& tokens,
                                                         AccessControl& access,
                                                         std::function<void(int)> serve) {
  std::unique_ptr<TlsGate> gate(new TlsGate(std::move(options), tokens, access, std::move(serve)));
  HPO_ASSIGN_OR_RETURN(
      gate->verifier_,
      ClientVerifier::Create(gate->options_.identity, gate->options_.client_ca_file, tokens));
  spdlog::info("TLS by {}", OpenSSL_version(OPENSSL_VERSION));
  gate->thread_ = std::thread([gate = gate.get()] { gate->Run(); });
  return gate;
}

TlsGate::TlsGate(GateOptions options, const TokenRegistry& tokens, AccessControl& access,
                 std::function<void(int)> serve)
    : options_(std::move(options)),
      tokens_(tokens),
      access_(access),
      serve_(std::move(serve)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      relay_([this](uint64_t connection) { access_.Leave(connection); }) {
  access_.LimitConnections(options_.most_connections);
  HPO_CHECK(epoll_ >= 0 && wake_ >= 0);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeKey}};
  HPO_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0);
}

TlsGate::~TlsGate() {
  if (thread_.joinable()) {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    eventfd_write(wake_, 1);
    thread_.join();
  }
  pending_.clear();
  absl::MutexLock lock(&mutex_);
  for (const int connection : taken_) close(connection);
  close(epoll_);
  close(wake_);
}

void TlsGate::Take(int connection) {
  {
    absl::MutexLock lock(&mutex_);
    taken_.push_back(connection);
  }
  eventfd_write(wake_, 1);
}

void TlsGate::CloseInvalid(uint64_t spared) {
  relay_.CloseWhere(access_.ConnectionsOf([this, spared](const Caller& caller) {
    const bool by_certificate = caller.token < 0;
    return caller.connection == spared ||
           (by_certificate ? access_.IsCurrent(caller) : tokens_.IsValid(caller.token));
  }));
}

void TlsGate::Run() {
  tls::BlockBrokenPipeSignal();
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kLowPriority);
  constexpr int kMostEvents = 64;
  std::array<epoll_event, kMostEvents> events;  // NOLINT: filled by epoll_wait
  for (;;) {
    const int count = epoll_wait(epoll_, events.data(), kMostEvents, EndLate());
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kWakeKey) {
        if (!TakeNew()) return;
        continue;
      }
      const auto handshake = pending_.find(id);
      if (handshake != pending_.end()) Continue(*handshake->second);
    }
  }
}

bool TlsGate::TakeNew() {
  eventfd_t ignored = 0;
  eventfd_read(wake_, &ignored);
  std::vector<int> taken;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    taken.swap(taken_);
  }
  for (const int connection : taken) Begin(connection);
  return true;
}

void TlsGate::Begin(int connection) {
  if (pending_.size() >= options_.most_pending) MakeRoom();
  const uint64_t id = next_id_++;
  auto handshake = std::make_unique<Handshake>();
  handshake->id = id;
  handshake->socket = connection;
  handshake->client.from = PeerAddressOf(connection);
  handshake->deadline = absl::Now() + options_.handshake_timeout;
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, connection, &event);
  by_group_[AddressGroupOf(handshake->client.from)].insert(id);
  pending_.emplace(id, std::move(handshake));
}

// The oldest of the groups that have most of them: a stranger with many connections makes room
// among its own, and where there are many strangers, whoever has had the most time does.
void TlsGate::MakeRoom() {
  const auto most =
      std::max_element(by_group_.begin(), by_group_.end(), [](const auto& one, const auto& other) {
        const size_t sizes[] = {one.second.size(), other.second.size()};
        return sizes[0] != sizes[1] ? sizes[0] < sizes[1]
                                    : *one.second.begin() > *other.second.begin();
      });
  const uint64_t oldest = *most->second.begin();
  Refuse(*pending_.at(oldest), "too many connections at once that have not proved a token");
  Drop(oldest);
}

void TlsGate::Drop(uint64_t id) {
  const auto handshake = pending_.find(id);
  const auto group = by_group_.find(AddressGroupOf(handshake->second->client.from));
  group->second.erase(id);
  if (group->second.empty()) by_group_.erase(group);
  pending_.erase(handshake);
}

void TlsGate::Continue(Handshake& handshake) {
  ERR_clear_error();
  // Not before there is something to read: one that says nothing costs next to nothing.
  if (handshake.tls == nullptr) {
    handshake.tls = verifier_->NewHandshake(handshake.client);
    SSL_set_fd(handshake.tls.get(), handshake.socket);
  }
  const int result = SSL_accept(handshake.tls.get());
  if (result > 0) {
    Admit(handshake);
    Drop(handshake.id);
    return;
  }
  const int error = SSL_get_error(handshake.tls.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    const bool writes = error == SSL_ERROR_WANT_WRITE;
    epoll_event event{.events = writes ? EPOLLOUT : EPOLLIN, .data = {.u64 = handshake.id}};
    epoll_ctl(epoll_, EPOLL_CTL_MOD, handshake.socket, &event);
    return;
  }
  const bool left = error == SSL_ERROR_SYSCALL || ERR_peek_error() == 0;
  const std::string words = tls::TakeOpensslError();
  Refuse(handshake, !handshake.client.why.empty() ? handshake.client.why
                    : left                        ? "the client left before it proved a token"
                                                  : words);
  Drop(handshake.id);
}

void TlsGate::Refuse(const Handshake& handshake, const std::string& why, absl::StatusCode code) {
  const bool is_known = handshake.client.caller.has_value();
  access_.audit().WriteSparingly(
      {.event = "handshake",
       .who = is_known ? handshake.client.caller->name : "",
       .role = is_known ? std::string(RoleName(handshake.client.caller->role)) : "",
       .from = handshake.client.from,
       .method = "",
       .what = "",
       .result = absl::StatusCodeToString(code),
       .why = why});
}

void TlsGate::Admit(Handshake& handshake) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, handshake.socket, nullptr);
  const auto ends =
      PairOfFreeName([&] { return access_.Enter(*handshake.client.caller, handshake.id); });
  if (!ends.ok()) {
    access_.Leave(handshake.id);
    const std::string why(ends.status().message());
    if (absl::IsResourceExhausted(ends.status())) {
      const std::string goodbye = GoodbyeOf(why);
      SSL_write(handshake.tls.get(), goodbye.data(), static_cast<int>(goodbye.size()));
    }
    Refuse(handshake, why, ends.status().code());
    return;
  }
  // gRPC first: it begins to speak at once, by which the client learns that it is admitted.
  serve_(ends->second);
  relay_.Add({.tls = std::move(handshake.tls),
              .tls_socket = std::exchange(handshake.socket, -1),
              .plain_socket = ends->first,
              .id = handshake.id,
              .bytes_per_second = options_.bytes_per_second,
              .admits = GuardOf(access_, *handshake.client.caller)});
}

int TlsGate::EndLate() {
  const absl::Time now = absl::Now();
  // Ids grow with age, and all have the same time.
  while (!pending_.empty() && pending_.begin()->second->deadline <= now) {
    Refuse(*pending_.begin()->second,
           absl::StrCat("no token was proved within ",
                        absl::FormatDuration(options_.handshake_timeout)));
    Drop(pending_.begin()->first);
  }
  if (pending_.empty()) return -1;
  const absl::Duration left = pending_.begin()->second->deadline - now;
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

}  // namespace hpo::server
