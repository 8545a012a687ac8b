// When a lease is alive. Pure.
//
// A lease that is not renewed becomes suspect after one TTL and is taken back after two: a worker
// that returns in between has lost nothing. After a restart of the server every lease is renewed as
// of one TTL in the future, because workers could not reach it meanwhile (etcd's rule).
#pragma once

#include "absl/time/time.h"

namespace hpo::server {

struct LeasePolicy {
  absl::Duration ttl = absl::Seconds(60);
};

enum class LeaseHealth { kActive, kSuspect, kExpired };

// Times are readings of Clock::Monotonic(). Active for exactly one TTL, suspect for exactly one.
LeaseHealth HealthOf(absl::Duration renewed_at, absl::Duration now, const LeasePolicy& policy);

// What a lease found in the database counts as renewed at.
absl::Duration RenewedByRestart(absl::Duration now, const LeasePolicy& policy);

// Six beats in a TTL.
absl::Duration HeartbeatInterval(const LeasePolicy& policy);

// How long a session that has closed the stream which it held open (WorkerService.Attend) may stay
// silent before its leases are lost: 15 s, in which a client finds a server that is back (it tries
// every 3 s) and beats, or two TTLs where those are less.
absl::Duration AttendanceGrace(const LeasePolicy& policy);

}  // namespace hpo::server
