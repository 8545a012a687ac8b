#include "common/tls/relay.h"

#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace hpo::tls {
namespace {

constexpr size_t kMostBuffered = 256 << 10;  // bytes in each direction of a pair
constexpr size_t kPiece = 16 << 10;          // a TLS record's most
// Of one pair before the others get their turn.
constexpr int kMostRounds = 8;
constexpr absl::Duration kWindow = absl::Seconds(1);
// The data of an event is the key of its link; this bit says that it is of the plain end.
constexpr uint64_t kPlainEnd = uint64_t{1} << 63;
constexpr uint64_t kWakeKey = 0;

// Bytes on their way in one direction. Those sent are at the front of a string, which is cleared
// once it is empty.
class Buffer {
 public:
  bool empty() const { return sent_ == bytes_.size(); }
  bool full() const { return bytes_.size() - sent_ >= kMostBuffered; }
  const char* data() const { return bytes_.data() + sent_; }
  size_t size() const { return bytes_.size() - sent_; }
  void Append(const char* data, size_t size) { bytes_.append(data, size); }
  void Sent(size_t size) {
    sent_ += size;
    if (sent_ == bytes_.size()) {
      bytes_.clear();
      sent_ = 0;
    }
  }

 private:
  std::string bytes_;
  size_t sent_ = 0;
};

}  // namespace

class Relay::Link {
 public:
  Link(RelayedPair pair, uint64_t key) : pair_(std::move(pair)), key_(key) {}
  ~Link() {
    // The peer learns that nothing was cut off.
    if (!broken_) SSL_shutdown(pair_.tls.get());
    ERR_clear_error();
    close(pair_.tls_socket);
    close(pair_.plain_socket);
  }
  Link(const Link&) = delete;

  uint64_t key() const { return key_; }
  uint64_t id() const { return pair_.id; }
  int tls_socket() const { return pair_.tls_socket; }
  int plain_socket() const { return pair_.plain_socket; }

  // Moves what can be moved, for a while. True: there may be more at once.
  bool Move(absl::Time now) {
    for (int round = 0; round < kMostRounds; ++round) {
      bool moved = ReadTls(now);
      moved |= WritePlain();
      moved |= ReadPlain();
      moved |= WriteTls();
      if (!moved || over()) return false;
    }
    return true;
  }

  // Nothing is left to be moved.
  bool over() const {
    return failed_ || (tls_ended_ && to_plain_.empty()) || (plain_ended_ && to_tls_.empty());
  }
  bool held_back(absl::Time now) const {
    return pair_.bytes_per_second > 0 && taken_ >= pair_.bytes_per_second &&
           now < window_ + kWindow;
  }
  absl::Time window_end() const { return window_ + kWindow; }

  // The events to wait for.
  uint32_t TlsEvents(absl::Time now) const {
    const bool reads = !tls_ended_ && !to_plain_.full() && !held_back(now);
    const bool writes = !to_tls_.empty() || tls_wants_write_;
    return (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
  }
  uint32_t PlainEvents() const {
    const bool reads = !plain_ended_ && !to_tls_.full();
    return (reads ? EPOLLIN : 0U) | (to_plain_.empty() ? 0U : EPOLLOUT);
  }
  bool tls_ended() const { return tls_ended_; }
  bool plain_ended() const { return plain_ended_; }
  // The events that epoll waits for; nullopt: the socket is not with epoll.
  std::optional<uint32_t> watched_tls = 0;
  std::optional<uint32_t> watched_plain = 0;

 private:
  bool ReadTls(absl::Time now) {
    if (now >= window_ + kWindow) {
      window_ = now;
      taken_ = 0;
    }
    if (tls_ended_ || failed_ || to_plain_.full() || held_back(now)) return false;
    std::array<char, kPiece> piece;  // NOLINT: filled below
    const int size = SSL_read(pair_.tls.get(), piece.data(), static_cast<int>(piece.size()));
    if (size <= 0) {
      TakeTlsResult(size, tls_ended_);
      return false;
    }
    tls_wants_write_ = false;
    taken_ += size;
    if (pair_.admits && !pair_.admits(piece.data(), static_cast<size_t>(size))) {
      failed_ = true;
      return false;
    }
    to_plain_.Append(piece.data(), static_cast<size_t>(size));
    return true;
  }

  bool WriteTls() {
    if (to_tls_.empty() || failed_) return false;
    const int size = SSL_write(pair_.tls.get(), to_tls_.data(),
                               static_cast<int>(std::min(to_tls_.size(), kPiece)));
    if (size <= 0) {
      bool ended = false;
      TakeTlsResult(size, ended);
      failed_ = failed_ || ended;
      return false;
    }
    to_tls_.Sent(static_cast<size_t>(size));
    return true;
  }

  void TakeTlsResult(int result, bool& ended) {
    switch (SSL_get_error(pair_.tls.get(), result)) {
      case SSL_ERROR_WANT_READ:
        break;
      case SSL_ERROR_WANT_WRITE:
        tls_wants_write_ = true;
        break;
      case SSL_ERROR_ZERO_RETURN:
        ended = true;
        break;
      default:
        // Also the end of the connection without TLS's own: HTTP/2 has its own end.
        ended = true;
        broken_ = true;
    }
    ERR_clear_error();
  }

  bool ReadPlain() {
    if (plain_ended_ || failed_ || to_tls_.full()) return false;
    std::array<char, kPiece> piece;  // NOLINT: filled below
    const ssize_t size = recv(pair_.plain_socket, piece.data(), piece.size(), MSG_DONTWAIT);
    if (size > 0) {
      to_tls_.Append(piece.data(), static_cast<size_t>(size));
      return true;
    }
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) plain_ended_ = true;
    return false;
  }

  bool WritePlain() {
    if (to_plain_.empty() || failed_) return false;
    const ssize_t size =
        send(pair_.plain_socket, to_plain_.data(), to_plain_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      to_plain_.Sent(static_cast<size_t>(size));
      return true;
    }
    if (errno != EAGAIN && errno != EINTR) failed_ = true;
    return false;
  }

  RelayedPair pair_;
  const uint64_t key_;
  Buffer to_plain_;
  Buffer to_tls_;
  bool tls_ended_ = false;
  bool plain_ended_ = false;
  bool failed_ = false;
  bool broken_ = false;  // the TLS end, which takes nothing more
  bool tls_wants_write_ = false;
  absl::Time window_ = absl::InfinitePast();
  int64_t taken_ = 0;  // bytes from the TLS end since window_
};

Relay::Relay(std::function<void(uint64_t)> ended)
    : ended_(std::move(ended)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  HPO_CHECK(epoll_ >= 0 && wake_ >= 0);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeKey}};
  HPO_CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0);
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  close(epoll_);
  close(wake_);
}

void Relay::Add(RelayedPair pair) {
  {
    absl::MutexLock lock(&mutex_);
    added_.push_back(std::move(pair));
  }
  eventfd_write(wake_, 1);
}

void Relay::CloseWhere(std::function<bool(uint64_t)> chosen) {
  {
    absl::MutexLock lock(&mutex_);
    closed_.push_back(std::move(chosen));
  }
  eventfd_write(wake_, 1);
}

void Relay::Run() {
  BlockBrokenPipeSignal();
  constexpr int kMostEvents = 64;
  std::array<epoll_event, kMostEvents> events;  // NOLINT: filled by epoll_wait
  for (;;) {
    const int count = epoll_wait(epoll_, events.data(), kMostEvents, ServeWaiting());
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[static_cast<size_t>(i)].data.u64;
      if (key == kWakeKey) {
        if (!TakeOrders()) return;
        continue;
      }
      const auto link = links_.find(key & ~kPlainEnd);
      if (link != links_.end()) Carry(*link->second);
    }
  }
}

bool Relay::TakeOrders() {
  eventfd_t ignored = 0;
  eventfd_read(wake_, &ignored);
  std::vector<RelayedPair> added;
  std::vector<std::function<bool(uint64_t)>> closed;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      links_.clear();
      return false;
    }
    added.swap(added_);
    closed.swap(closed_);
  }
  for (RelayedPair& pair : added) {
    const uint64_t key = next_key_++;
    auto link = std::make_unique<Link>(std::move(pair), key);
    epoll_event tls{.events = 0, .data = {.u64 = key}};
    epoll_event plain{.events = 0, .data = {.u64 = key | kPlainEnd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, link->tls_socket(), &tls);
    epoll_ctl(epoll_, EPOLL_CTL_ADD, link->plain_socket(), &plain);
    // OpenSSL may have read more than the handshake.
    Carry(*links_.emplace(key, std::move(link)).first->second);
  }
  std::vector<uint64_t> chosen;
  for (const auto& [key, link] : links_) {
    const uint64_t id = link->id();
    if (std::any_of(closed.begin(), closed.end(), [id](const auto& one) { return one(id); })) {
      chosen.push_back(key);
    }
  }
  for (const uint64_t key : chosen) Close(key);
  return true;
}

void Relay::Carry(Link& link) {
  const absl::Time now = absl::Now();
  const bool more = link.Move(now);
  if (link.over()) {
    Close(link.key());
    return;
  }
  if (more || link.held_back(now)) waiting_.insert(link.key());
  Watch(link, now);
}

void Relay::Watch(Link& link, absl::Time now) {
  const auto watch = [this](int socket, uint64_t key, uint32_t events, bool ended,
                            std::optional<uint32_t>& watched) {
    // One that has ended would be reported again and again, whatever is waited for.
    const bool leaves = ended && events == 0;
    if (!watched || (*watched == events && !leaves)) return;
    epoll_event event{.events = events, .data = {.u64 = key}};
    epoll_ctl(epoll_, leaves ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, socket, &event);
    watched = leaves ? std::nullopt : std::optional(events);
  };
  const uint32_t tls = link.TlsEvents(now);
  watch(link.tls_socket(), link.key(), tls, link.tls_ended(), link.watched_tls);
  watch(link.plain_socket(), link.key() | kPlainEnd, link.PlainEvents(), link.plain_ended(),
        link.watched_plain);
}

void Relay::Close(uint64_t key) {
  const auto link = links_.find(key);
  if (link == links_.end()) return;
  const uint64_t id = link->second->id();
  waiting_.erase(key);
  links_.erase(link);
  if (ended_) ended_(id);
}

int Relay::ServeWaiting() {
  const std::set<uint64_t> waiting = std::exchange(waiting_, {});
  absl::Duration wait = absl::InfiniteDuration();
  for (const uint64_t key : waiting) {
    const auto link = links_.find(key);
    if (link == links_.end()) continue;
    const absl::Time now = absl::Now();
    if (!link->second->held_back(now)) {
      Carry(*link->second);
      // It may be held back, have more or be closed now.
      if (waiting_.contains(key)) wait = absl::ZeroDuration();
      continue;
    }
    waiting_.insert(key);
    wait = std::min(wait, link->second->window_end() - now);
  }
  if (wait == absl::InfiniteDuration()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
}

}  // namespace hpo::tls
