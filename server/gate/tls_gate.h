// Admits connections by TLS before gRPC sees a byte of them. A client proves in the handshake that
// it has the secret of a token (mutual TLS 1.3); what fails, or takes too long, never reaches the
// parser of HTTP/2. Admitted connections are carried to gRPC by a relay.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/tls/identity.h"
#include "common/tls/relay.h"
#include "server/access/access_control.h"
#include "server/access/client_verifier.h"
#include "server/access/token_registry.h"

namespace hpo::server {

struct GateOptions {
  tls::Identity identity;
  std::string client_ca_file;  // see ClientVerifier
  absl::Duration handshake_timeout = absl::Seconds(10);
  // Connections whose handshake is not complete: the oldest of those address groups that have most
  // of them makes room for the next one.
  size_t most_pending = 256;
  int most_connections = 3333;  // of all that have proved a token; see AccessControl
  int64_t bytes_per_second = int64_t{256} << 20;  // from each client
};

// Thread-safe. Two threads from Create to destruction: one for handshakes, at a lower priority, so
// that strangers cost admitted clients little, and the relay's.
class TlsGate {
 public:
  // `serve` gets the socket of an admitted connection, which it owns; on the gate's thread.
  // `tokens` and `access` outlive the gate.
  //   InvalidArgument  client_ca_file is not PEM
  static absl::StatusOr<std::unique_ptr<TlsGate>> Create(GateOptions options,
                                                         const TokenRegistry& tokens,
                                                         AccessControl& access,
                                                         std::function<void(int)> serve);
  TlsGate(const TlsGate&) = delete;
  ~TlsGate();

  // Takes a connection, which is non-blocking, and owns it.
  void Take(int connection);

  // Closes the connections of tokens that have been revoked or replaced, or have expired, but
  // `spared`.
  void CloseInvalid(uint64_t spared = 0);

 private:
  struct Handshake;

  TlsGate(GateOptions options, const TokenRegistry& tokens, AccessControl& access,
          std::function<void(int)> serve);

  void Run();
  // False: the gate ends.
  bool TakeNew();
  void Begin(int connection);
  void Continue(Handshake& handshake);
  void Admit(Handshake& handshake);
  void Refuse(const Handshake& handshake, const std::string& why,
              absl::StatusCode code = absl::StatusCode::kUnauthenticated);
  void MakeRoom();
  void Drop(uint64_t id);
  // Ends those that took too long. Milliseconds until the next one does; -1: there is none.
  int EndLate();

  GateOptions options_;
  const TokenRegistry& tokens_;
  AccessControl& access_;
  const std::function<void(int)> serve_;
  std::unique_ptr<ClientVerifier> verifier_;
  const int epoll_;
  const int wake_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::unique_ptr<Handshake>> pending_;  // by id, which grows with age
  std::map<std::string, std::set<uint64_t>> by_group_;      // ids of pending_, by AddressGroupOf
  absl::Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  tls::Relay relay_;
  std::thread thread_;
};

}  // namespace hpo::server
