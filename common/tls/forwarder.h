// A local address that leads to a server on another machine: what connects to it is carried there
// by TLS. The programs' own gRPC channels go through one, and `hpo connect` is one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/tls/dial.h"
#include "common/tls/join_string.h"
#include "common/tls/relay.h"

namespace hpo::tls {

struct ForwarderOptions {
  // Asked before each connection: a file may have a new join string by then.
  std::function<absl::StatusOr<JoinString>()> join;
  // Called with each result that differs from the last one, on the forwarder's thread.
  std::function<void(const absl::Status&)> on_change;
  absl::Duration dial_timeout = absl::Seconds(10);
};

// Thread-safe. Two threads from Start to destruction.
class Forwarder {
 public:
  // For this process alone: an address of gRPC's that refuses other processes.
  static absl::StatusOr<std::unique_ptr<Forwarder>> StartForThisProcess(ForwarderOptions options);
  // Takes connections of `listener`, a listening non-blocking socket that it closes at its end.
  static std::unique_ptr<Forwarder> Start(int listener, ForwarderOptions options);
  Forwarder(const Forwarder&) = delete;
  ~Forwarder();

  // As gRPC takes it; empty where the caller has made the listener.
  const std::string& address() const { return address_; }
  // Connects once, and says how it went (Dial). Blocks for up to the dial timeout.
  absl::Status Check();
  // How the last connection went. Once one was admitted, another server at the address is
  // Unavailable: somebody started a wrong one, and clients of the right one wait for it.
  absl::Status status() const;

 private:
  Forwarder(int listener, std::string address, bool own_process, ForwarderOptions options);

  void Run();
  // To the server of the join string, as it is now.
  absl::StatusOr<Dialed> DialNow() const;
  void Forward(int connection);
  void Note(absl::Status status);

  const std::string address_;
  const bool own_process_;
  const ForwarderOptions options_;
  const int listener_;
  const int wake_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool was_admitted_ ABSL_GUARDED_BY(mutex_) = false;
  Relay relay_;
  std::thread thread_;
};

}  // namespace hpo::tls
