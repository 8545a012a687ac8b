#include "server/rpc/tls_gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/access/message_guard.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr uint64_t kWakeKey = 0;
constexpr int64_t kToleratedFactor = 2;              // of the limit of a message
constexpr int kLowPriority = 10;                     // of nice(2)
constexpr long kLargestChainOfToken = 4 << 10;       // NOLINT(google-runtime-int): OpenSSL's type
constexpr long kLargestChainOfAuthority = 32 << 10;  // NOLINT(google-runtime-int)
constexpr unsigned char kHttp2[] = "\x02h2";

std::string AddressOf(int connection) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "gone";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return absl::StrCat(text.data(), ":", ntohs(v4.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return absl::StrCat("[", text.data(), "]:", ntohs(v6.sin6_port));
  }
  return "unix";
}

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// Prefers what OpenSSL prefers; a client that offers other protocols than HTTP/2 is refused.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  unsigned char* selected = nullptr;
  const int result =
      SSL_select_next_proto(&selected, size, kHttp2, sizeof(kHttp2) - 1, offered, offered_size);
  *chosen = selected;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::string PartOf(const X509* certificate, int kind) {
  std::array<char, 128> text{};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), kind, text.data(),
                                             static_cast<int>(text.size()));
  return size > 0 ? std::string(text.data()) : "";
}

// Two connected sockets of which the second one sees the first one under `name`.
std::optional<std::pair<int, int>> NamedPair(const std::string& name) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return std::nullopt;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof(address.sun_path) - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(ends[0], reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    return std::pair(ends[0], ends[1]);
  }
  close(ends[0]);
  close(ends[1]);
  return std::nullopt;
}

}  // namespace

struct TlsGate::Handshake {
  uint64_t id = 0;
  int socket = -1;
  std::string from;
  absl::Time deadline;
  tls::SslPtr tls;
  std::string why;  // the client's certificate was refused
  std::optional<Caller> caller;
  ~Handshake() {
    if (socket >= 0) close(socket);
  }
};

absl::StatusOr<std::unique_ptr<TlsGate>> TlsGate::Create(GateOptions options,
                                                         const TokenRegistry& tokens,
                                                         AccessControl& access,
                                                         std::function<void(int)> serve) {
  std::unique_ptr<TlsGate> gate(new TlsGate(std::move(options), tokens, access, std::move(serve)));
  HPO_RETURN_IF_ERROR(gate->MakeContext());
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

absl::Status TlsGate::MakeContext() {
  context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = context_.get();
  bool made = context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
              SSL_CTX_use_certificate(context, options_.identity.certificate.get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, options_.identity.key.get()) == 1;
  for (const tls::CertificatePtr& one : options_.identity.chain) {
    made = made && SSL_CTX_add1_chain_cert(context, one.get()) == 1;
  }
  if (!made) return absl::InternalError(absl::StrCat("TLS: ", tls::TakeOpensslError()));
  // No resumption: each connection proves its token anew, and nothing can be replayed.
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, Verify, this);
  SSL_CTX_set_max_cert_list(
      context, options_.client_ca_file.empty() ? kLargestChainOfToken : kLargestChainOfAuthority);
  if (options_.client_ca_file.empty()) return absl::OkStatus();
  client_authorities_.reset(X509_STORE_new());
  if (X509_STORE_load_file(client_authorities_.get(), options_.client_ca_file.c_str()) == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--tls-client-ca: expected certificates in PEM in ", options_.client_ca_file,
                   ", got: ", tls::TakeOpensslError()));
}

int TlsGate::Verify(X509_STORE_CTX* presented, void* gate) {
  auto* const tls = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(presented, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& handshake = *static_cast<Handshake*>(SSL_get_app_data(tls));
  return static_cast<const TlsGate*>(gate)->VerifyClient(presented, handshake);
}

// 1: admitted. Otherwise the error decides about the alert, by which the client learns the reason.
int TlsGate::VerifyClient(X509_STORE_CTX* presented, Handshake& handshake) const {
  X509* const leaf = X509_STORE_CTX_get0_cert(presented);
  const Admission admission = tokens_.Admit(tls::KeyDigest(leaf));
  const auto refuse = [&](int error, const char* why) {
    handshake.why = why;
    X509_STORE_CTX_set_error(presented, error);
    return 0;
  };
  handshake.caller = Caller{.token = admission.token,
                            .name = admission.name,
                            .role = admission.role,
                            .from = handshake.from,
                            .expires = admission.expires};
  switch (admission.verdict) {
    case Admission::Verdict::kAdmitted:
      return 1;
    case Admission::Verdict::kRevoked:
      return refuse(X509_V_ERR_CERT_REVOKED, "the token has been revoked");
    case Admission::Verdict::kExpired:
      return refuse(X509_V_ERR_CERT_HAS_EXPIRED, "the token has expired or was replaced");
    case Admission::Verdict::kUnknown:
      break;
  }
  if (client_authorities_ == nullptr) {
    handshake.caller.reset();
    return refuse(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "no such token");
  }
  const std::unique_ptr<X509_STORE_CTX, tls::Freed<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), client_authorities_.get(), leaf,
                      X509_STORE_CTX_get0_untrusted(presented));
  X509_VERIFY_PARAM_set_purpose(X509_STORE_CTX_get0_param(context.get()), X509_PURPOSE_SSL_CLIENT);
  handshake.caller =
      Caller{.token = -1,
             .name = absl::StrCat("certificate:", PartOf(leaf, NID_commonName)),
             .role = RoleNamed(PartOf(leaf, NID_organizationalUnitName)).value_or(Role::kRead),
             .from = handshake.from,
             .expires = tls::ExpiryOf(leaf)};
  if (X509_verify_cert(context.get()) == 1) return 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  return refuse(error, X509_verify_cert_error_string(error));
}

void TlsGate::Take(int connection) {
  {
    absl::MutexLock lock(&mutex_);
    taken_.push_back(connection);
  }
  eventfd_write(wake_, 1);
}

void TlsGate::CloseInvalid() {
  relay_.CloseWhere(
      access_.ConnectionsOf([this](int64_t token) { return token < 0 || tokens_.IsValid(token); }));
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
  handshake->from = AddressOf(connection);
  handshake->deadline = absl::Now() + options_.handshake_timeout;
  handshake->tls.reset(SSL_new(context_.get()));
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  SSL_set_fd(handshake->tls.get(), connection);
  SSL_set_app_data(handshake->tls.get(), handshake.get());
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, connection, &event);
  Continue(*pending_.emplace(id, std::move(handshake)).first->second);
}

// The oldest of the address that has most of them: a stranger with many connections makes room
// among its own.
void TlsGate::MakeRoom() {
  std::map<std::string, size_t> counts;
  for (const auto& [id, handshake] : pending_) ++counts[HostOf(handshake->from)];
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  for (const auto& [id, handshake] : pending_) {
    if (HostOf(handshake->from) != most->first) continue;
    Refuse(*handshake, "too many connections at once that have not proved a token");
    pending_.erase(id);
    return;
  }
}

void TlsGate::Continue(Handshake& handshake) {
  ERR_clear_error();
  const int result = SSL_accept(handshake.tls.get());
  if (result > 0) {
    Admit(handshake);
    pending_.erase(handshake.id);
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
  Refuse(handshake, !handshake.why.empty() ? handshake.why
                    : left                 ? "the client left before it proved a token"
                                           : words);
  pending_.erase(handshake.id);
}

void TlsGate::Refuse(const Handshake& handshake, const std::string& why) {
  const bool is_known = handshake.caller.has_value();
  access_.audit().WriteSparingly(
      {.event = "handshake",
       .who = is_known ? handshake.caller->name : "",
       .role = is_known ? std::string(RoleName(handshake.caller->role)) : "",
       .from = handshake.from,
       .method = "",
       .what = "",
       .result = "UNAUTHENTICATED",
       .why = why});
  spdlog::debug("a connection from {} is refused: {}", handshake.from, why);
}

void TlsGate::Admit(Handshake& handshake) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, handshake.socket, nullptr);
  const std::string peer = access_.Enter(*handshake.caller, handshake.id);
  const auto ends = NamedPair(peer);
  if (!ends) {
    access_.Leave(handshake.id);
    Refuse(handshake, "the server has no file descriptor left");
    return;
  }
  // gRPC first: it begins to speak at once, by which the client learns that it is admitted.
  serve_(ends->second);
  relay_.Add({.tls = std::move(handshake.tls),
              .tls_socket = std::exchange(handshake.socket, -1),
              .plain_socket = ends->first,
              .id = handshake.id,
              .bytes_per_second = options_.bytes_per_second,
              .admits = GuardOf(*handshake.caller)});
}

std::function<bool(const char*, size_t)> TlsGate::GuardOf(const Caller& caller) {
  return [this, caller, guard = MessageGuard()](const char* data, size_t size) mutable {
    const int64_t longest = guard.Take(data, size);
    if (longest <= kMessageLimit.most) return true;
    access_.audit().WriteSparingly(
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

int TlsGate::EndLate() {
  const absl::Time now = absl::Now();
  // Ids grow with age, and all have the same time.
  while (!pending_.empty() && pending_.begin()->second->deadline <= now) {
    Refuse(*pending_.begin()->second,
           absl::StrCat("no token was proved within ",
                        absl::FormatDuration(options_.handshake_timeout)));
    pending_.erase(pending_.begin());
  }
  if (pending_.empty()) return -1;
  const absl::Duration left = pending_.begin()->second->deadline - now;
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

}  // namespace hpo::server
