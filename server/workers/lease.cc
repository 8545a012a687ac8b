#include "server/workers/lease.h"

#include <algorithm>

namespace hpo::server {

LeaseHealth HealthOf(absl::Duration renewed_at, absl::Duration now, const LeasePolicy& policy) {
  const absl::Duration age = now - renewed_at;
  if (age <= policy.ttl) return LeaseHealth::kActive;
  if (age <= 2 * policy.ttl) return LeaseHealth::kSuspect;
  return LeaseHealth::kExpired;
}

absl::Duration RenewedByRestart(absl::Duration now, const LeasePolicy& policy) {
  return now + policy.ttl;
}

absl::Duration HeartbeatInterval(const LeasePolicy& policy) { return policy.ttl / 6; }

absl::Duration AttendanceGrace(const LeasePolicy& policy) {
  return std::min(absl::Seconds(15), 2 * policy.ttl);
}

}  // namespace hpo::server
