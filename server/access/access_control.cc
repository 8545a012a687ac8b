#include "server/access/access_control.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/access/method_roles.h"

namespace hpo::server {
namespace {

constexpr char kAbstract[] = "unix-abstract:";
constexpr int kPartOfAdmins = 16;  // of connections

// Whether a token that has `held` of what all tokens share may have one more. `left`: what nobody
// has. No token can take all, and one that is alone gets two thirds.
bool MayTakeOneMore(int held, int left) { return held < 2 * left; }

absl::Status Expired(const Caller& caller) {
  if (caller.token < 0) {
    return absl::UnauthenticatedError(absl::StrCat("the ", caller.name, " has expired"));
  }
  return absl::UnauthenticatedError(absl::StrCat(
      "the token '", caller.name,
      "' has expired; an administrator renews it: hpo admin token rotate ", caller.name));
}

absl::Status Denied(const Caller& caller, absl::string_view method, Role needed) {
  return absl::PermissionDeniedError(absl::StrCat(
      "the token '", caller.name, "' has the role ", RoleName(caller.role), ", and ",
      method.substr(method.rfind('/') + 1), " needs ", RoleName(needed),
      "; an administrator makes one: hpo admin token create NAME --role ", RoleName(needed)));
}

}  // namespace

AccessControl::AccessControl(AuditLog& audit, const Clock& clock, CallLimits limits)
    : audit_(audit),
      clock_(clock),
      limits_(limits),
      page_prefix_(absl::StrCat("hpo-page-", RandomId())) {}

void AccessControl::LimitConnections(int most) {
  absl::MutexLock lock(&mutex_);
  most_connections_ = most;
}

absl::StatusOr<std::string> AccessControl::Enter(Caller caller, uint64_t connection) {
  std::string peer = absl::StrCat("hpo-peer-", RandomId());
  absl::MutexLock lock(&mutex_);
  LeaveLocked(connection);
  const int reserved =
      caller.role == Role::kAdmin ? 0 : std::max(1, most_connections_ / kPartOfAdmins);
  const int left = most_connections_ - reserved - static_cast<int>(peers_.size());
  const auto open = open_.find(caller.token);
  const int held = open == open_.end() ? 0 : open->second;
  if (!MayTakeOneMore(held, left)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the token '", caller.name, "' has ", held,
                     " connections, the most that it may have now; try again later"));
  }
  ++open_[caller.token];
  caller.connection = connection;
  peers_[connection] = peer;
  connections_[peer] = {.caller = std::move(caller),
                        .calls_left = static_cast<double>(limits_.calls_per_second),
                        .filled = clock_.Monotonic()};
  return peer;
}

void AccessControl::Leave(uint64_t connection) {
  absl::MutexLock lock(&mutex_);
  LeaveLocked(connection);
}

void AccessControl::LeaveLocked(uint64_t connection) {
  const auto peer = peers_.find(connection);
  if (peer == peers_.end()) return;
  const auto one = connections_.find(peer->second);
  const auto open = open_.find(one->second.caller.token);
  if (--open->second == 0) open_.erase(open);
  connections_.erase(one);
  peers_.erase(peer);
}

std::string AccessControl::EnterPage(Caller caller) {
  const std::string peer = absl::StrCat(page_prefix_, "-", next_page_++);
  absl::MutexLock lock(&mutex_);
  connections_[peer] = {.caller = std::move(caller),
                        .calls_left = static_cast<double>(limits_.calls_per_second),
                        .filled = clock_.Monotonic()};
  return absl::StrCat(kAbstract, peer);
}

void AccessControl::LeavePage(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  connections_.erase(peer.substr(sizeof(kAbstract) - 1));
}

bool AccessControl::IsOfPage(absl::string_view peer) const {
  return absl::ConsumePrefix(&peer, kAbstract) && absl::StartsWith(peer, page_prefix_);
}

std::function<bool(uint64_t)> AccessControl::ConnectionsOf(
    const std::function<bool(const Caller&)>& valid) const {
  std::set<uint64_t> chosen;
  absl::MutexLock lock(&mutex_);
  for (const auto& [connection, peer] : peers_) {
    if (!valid(connections_.at(peer).caller)) chosen.insert(connection);
  }
  return [chosen = std::move(chosen)](uint64_t connection) { return chosen.contains(connection); };
}

std::optional<Caller> AccessControl::CallerAt(absl::string_view peer) const {
  if (!absl::ConsumePrefix(&peer, kAbstract)) {
    return Caller{.name = "local", .from = std::string(peer)};
  }
  absl::MutexLock lock(&mutex_);
  const auto connection = connections_.find(peer);
  if (connection == connections_.end()) return std::nullopt;
  return connection->second.caller;
}

absl::StatusOr<AccessControl::Permit> AccessControl::Allow(absl::string_view method,
                                                           const std::string& peer) {
  const std::optional<Caller> caller = CallerAt(peer);
  if (!caller) return absl::UnauthenticatedError("the connection has been closed by the server");
  const std::optional<MethodRule> rule = RuleOf(method);
  absl::Status allowed;
  if (!rule) {
    allowed = absl::UnimplementedError(absl::StrCat("no rule says who may call ", method));
  } else if (!IsCurrent(*caller)) {
    allowed = Expired(*caller);
  } else if (!Includes(caller->role, rule->role)) {
    allowed = Denied(*caller, method, rule->role);
  } else {
    allowed = Take(peer, *caller);
  }
  if (allowed.ok()) return Permit(*this, *caller);
  audit_.WriteSparingly({.event = "refused",
                         .who = caller->name,
                         .role = std::string(RoleName(caller->role)),
                         .from = caller->from,
                         .method = std::string(method),
                         .what = "",
                         .result = absl::StatusCodeToString(allowed.code()),
                         .why = std::string(allowed.message())});
  return allowed;
}

absl::Status AccessControl::Take(absl::string_view peer, const Caller& caller) {
  absl::MutexLock lock(&mutex_);
  if (caller.token != 0) HPO_RETURN_IF_ERROR(TakeFromLimits(peer, caller));
  ++in_flight_[caller.token];
  ++num_in_flight_;
  return absl::OkStatus();
}

absl::Status AccessControl::TakeFromLimits(absl::string_view peer, const Caller& caller) {
  const auto found = in_flight_.find(caller.token);
  const int in_flight = found == in_flight_.end() ? 0 : found->second;
  const int reserved = caller.role == Role::kAdmin ? 0 : limits_.calls_of_admins;
  const int left = limits_.calls_in_flight - reserved - num_in_flight_;
  if (!MayTakeOneMore(in_flight, left)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the token '", caller.name, "' has ", in_flight,
                     " calls under way, the most that it may have now; try again later"));
  }
  absl::ConsumePrefix(&peer, kAbstract);
  const auto connection = connections_.find(peer);
  if (connection == connections_.end()) {
    return absl::UnauthenticatedError("the connection has been closed by the server");
  }
  Connection& one = connection->second;
  const absl::Duration now = clock_.Monotonic();
  const double most = limits_.calls_per_second;
  one.calls_left = std::min(most, one.calls_left + most * absl::ToDoubleSeconds(now - one.filled));
  one.filled = now;
  if (one.calls_left < 1.0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a connection may make ", limits_.calls_per_second, " calls a second; try again later"));
  }
  one.calls_left -= 1.0;
  return absl::OkStatus();
}

void AccessControl::End(const Caller& caller) {
  absl::MutexLock lock(&mutex_);
  --num_in_flight_;
  const auto in_flight = in_flight_.find(caller.token);
  if (--in_flight->second == 0) in_flight_.erase(in_flight);
}

}  // namespace hpo::server
