// Carries bytes between TLS connections and plain sockets: one thread for any number of pairs, so
// that a server parses nothing of a client before the TLS handshake has admitted it, and clients
// that know no TLS can reach a server through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/tls/openssl_types.h"

namespace hpo::tls {

// A pair of ends. Both sockets are non-blocking and belong to the relay from Add on.
struct RelayedPair {
  SslPtr tls;  // after its handshake
  int tls_socket = -1;
  int plain_socket = -1;
  uint64_t id = 0;  // for CloseWhere and `ended`
  // Bytes a second that are read from the TLS end; what comes faster waits. 0: any number.
  int64_t bytes_per_second = 0;
  // Sees what was read from the TLS end before it is passed on, on the relay's thread. False: the
  // pair is closed. Empty: everything is passed on.
  std::function<bool(const char* data, size_t size)> admits;
};

// Thread-safe. One thread from construction to destruction, which closes all pairs.
class Relay {
 public:
  // `ended` is called on the relay's thread once a pair has been closed.
  explicit Relay(std::function<void(uint64_t id)> ended = nullptr);
  Relay(const Relay&) = delete;
  ~Relay();

  // Where one end closes, what it has sent is passed on, and the other end is closed, too.
  void Add(RelayedPair pair);

  // Closes those pairs at once. `chosen` is called on the relay's thread.
  void CloseWhere(std::function<bool(uint64_t id)> chosen);

 private:
  class Link;

  void Run();
  // What other threads have asked for since the last call. False: the relay ends.
  bool TakeOrders();
  void Watch(Link& link, absl::Time now);
  void Carry(Link& link);
  void Close(uint64_t key);
  // Lets those that were held back read again, once their second is over. Milliseconds until there
  // is something to do without an event; -1: nothing.
  int ServeWaiting();

  const std::function<void(uint64_t)> ended_;
  const int epoll_;
  const int wake_;
  std::map<uint64_t, std::unique_ptr<Link>> links_;  // by a number of the relay's own
  std::set<uint64_t> waiting_;                       // have more at once, or are held back
  uint64_t next_key_ = 1;
  absl::Mutex mutex_;
  std::vector<RelayedPair> added_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<bool(uint64_t)>> closed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hpo::tls
