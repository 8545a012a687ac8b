// Accepts connections in gRPC's stead: its own listener (1.51) stops for good when accept() fails
// once for want of a descriptor. This one goes on, keeps descriptors in reserve for the database,
// and tells those who come beyond its bound why they are sent away.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/command_line/listen_address.h"

namespace hpo::server {

// Raises the process' soft limit of descriptors to its hard one, at most kMostDescriptors; returns
// the limit that now holds.
int RaiseDescriptorLimit();
constexpr int kMostDescriptors = 65536;

// How many connections leave enough of `descriptors` for everything else. Pure.
int ConnectionsFor(int descriptors);

// HTTP/2 that ends a connection before its first call: RESOURCE_EXHAUSTED and `why`. Pure.
std::string GoodbyeOf(const std::string& why);

// One thread from Start to Stop.
class ConnectionAcceptor {
 public:
  // Serves the connection, which it owns from then on. Called on the acceptor's thread.
  using Serve = std::function<void(int listener, int connection)>;

  // Binds and listens; a unix socket is readable and writable for its owner alone.
  //   Unavailable  the address is in use, or what else the system says
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Listen(const ListenAddress& address,
                                                                    int most_connections);
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;
  ~ConnectionAcceptor();

  // With the real port.
  const ListenAddress& address() const { return address_; }

  // What a connection beyond the bound gets: an answer in plaintext HTTP/2, or nothing.
  enum class Refusal { kExplain, kClose };
  void Start(Serve serve, Refusal refusal = Refusal::kExplain);

  // No new connection is served once it returns; the address is free. Idempotent.
  void Stop();

 private:
  // A connection that was served: the descriptor is gRPC's, the inode tells whether it still is the
  // same one.
  struct Served {
    int descriptor;
    ino_t inode;
  };
  // One that is sent away: its first call is answered with RESOURCE_EXHAUSTED and the reason;
  // closed a moment later, so that it arrives.
  struct Refused {
    int descriptor;
    absl::Duration close_at;  // monotonic
    std::string received;
    bool answered;
  };

  ConnectionAcceptor(ListenAddress address, int listener, int most_connections);

  void Run();
  void AcceptOne();
  void TakeFailure(int error);
  // Counts one more that is not served. All since the last line, once a minute; else 0.
  int64_t CountToTell();
  void Refuse(int connection);
  void Answer(Refused& one);
  std::string WhyFull() const;
  void CloseRefused(absl::Duration until);
  bool HasRoom();

  ListenAddress address_;
  int listener_;
  const int most_connections_;
  int wake_;
  // Given up for a moment when there is no other descriptor left to accept and refuse with.
  int spare_;
  Serve serve_;
  Refusal refusal_ = Refusal::kExplain;
  const SystemClock clock_;
  std::vector<Served> served_;
  std::vector<Refused> refused_;
  absl::Duration resting_until_ = -absl::InfiniteDuration();  // after a failure
  absl::Duration told_ = -absl::InfiniteDuration();
  int64_t num_untold_ = 0;
  std::thread thread_;
};

}  // namespace hpo::server
