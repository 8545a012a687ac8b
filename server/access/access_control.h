// Decides about each call: who makes it, whether that role may make it, and whether it is within
// the client's limits. Every service of every transport asks here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/protocol/access.h"
#include "server/access/audit_log.h"

namespace hpo::server {

// The metadata by which a call from within the process names its caller (AccessControl::EnterPage).
inline constexpr char kPeerKey[] = "hpo-peer";

// Who makes a call.
struct Caller {
  // 0: without one, on this machine; below 0: by a certificate of an authority, and each has its
  // own.
  int64_t token = 0;
  std::string name;
  Role role = Role::kAdmin;
  std::string from;  // an address
  absl::Time expires = absl::InfiniteFuture();
  uint64_t connection = 0;  // as it has entered; 0: without TLS

  // Whether a study of this caller may have a command, which workers run.
  bool MayNameCommands() const { return role == Role::kAdmin; }
};

struct CallLimits {
  int calls_per_second = 1000;  // of a connection, with as many at once after a second of silence
  // Calls under way of all clients; each may hold one of the server's threads. A token may have
  // twice as many as are left: two thirds of all where it is alone, and another token gets some,
  // too. Administrators alone may have the last `calls_of_admins`.
  int calls_in_flight = 1984;
  int calls_of_admins = 448;
};

// Thread-safe.
class AccessControl {
 public:
  // `audit` and `clock` outlive it. What comes without TLS may do everything: it is of this
  // machine, or the operator has said --insecure.
  AccessControl(AuditLog& audit, const Clock& clock, CallLimits limits = {});

  // Sets the most connections of all tokens, which share them as they share calls (CallLimits);
  // administrators alone may have the last sixteenth. Not called: there is no limit.
  void LimitConnections(int most);

  // A connection that the TLS handshake has admitted. The name of its end that faces gRPC, without
  // the leading NUL of the abstract namespace: gRPC names the peer of its calls by it. It is
  // random, as every user of this machine can bind a name that can be foreseen. Entered again, a
  // connection gets another name.
  //   ResourceExhausted  the token has too many
  absl::StatusOr<std::string> Enter(Caller caller, uint64_t connection);
  void Leave(uint64_t connection);

  // A caller whom the page's HTTP server has admitted, and who calls by way of it. The name by
  // which calls from within the process name the caller (kPeerKey): nobody can
  // guess it.
  std::string EnterPage(Caller caller);
  void LeavePage(const std::string& peer);
  // Whether a name has the form of those that EnterPage gives.
  bool IsOfPage(absl::string_view peer) const;

  // Connections of callers that `valid` is false for.
  std::function<bool(uint64_t)> ConnectionsOf(
      const std::function<bool(const Caller&)>& valid) const;

  // A call that is under way, which counts until the permit is destroyed.
  class Permit {
   public:
    Permit(AccessControl& control, Caller caller)
        : control_(&control), caller_(std::move(caller)) {}
    Permit(Permit&& other) noexcept
        : control_(std::exchange(other.control_, nullptr)), caller_(std::move(other.caller_)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (control_ != nullptr) control_->End(caller_);
    }
    const Caller& caller() const { return caller_; }

   private:
    AccessControl* control_;
    Caller caller_;
  };

  // `method`: "/hpo.v1.StudyService/GetStudy"; `peer` as gRPC names it.
  //   Unauthenticated    the connection's token has been revoked or has expired
  //   PermissionDenied   the token's role may not; names both roles
  //   ResourceExhausted  the client is beyond its limits
  absl::StatusOr<Permit> Allow(absl::string_view method, const std::string& peer);

  // Who is at the other end; nullopt: a TLS connection that has gone.
  std::optional<Caller> CallerAt(absl::string_view peer) const;

  // Whether the caller's token or certificate has not expired.
  bool IsCurrent(const Caller& caller) const { return caller.expires > clock_.Now(); }

  AuditLog& audit() const { return audit_; }

 private:
  struct Connection {
    Caller caller;
    double calls_left = 0.0;
    absl::Duration filled;  // monotonic
  };

  // Counts the call of a caller, who has a token or not.
  absl::Status Take(absl::string_view peer, const Caller& caller);
  // What a token's call needs of the limits.
  absl::Status TakeFromLimits(absl::string_view peer, const Caller& caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveLocked(uint64_t connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Caller& caller);

  AuditLog& audit_;
  const Clock& clock_;
  const CallLimits limits_;
  const std::string page_prefix_;  // another one: sockets' names can be read by others
  std::atomic<uint64_t> next_page_ = 1;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, std::string> peers_ ABSL_GUARDED_BY(mutex_);  // by connection
  std::map<std::string, Connection, std::less<>> connections_ ABSL_GUARDED_BY(mutex_);  // by peer
  int most_connections_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int>::max() / 2;
  std::map<int64_t, int> open_ ABSL_GUARDED_BY(mutex_);       // connections by token
  std::map<int64_t, int> in_flight_ ABSL_GUARDED_BY(mutex_);  // calls by token
  int num_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;             // of all
};

}  // namespace hpo::server
