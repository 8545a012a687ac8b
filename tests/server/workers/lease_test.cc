#include "server/workers/lease.h"

#include <tuple>

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

constexpr LeasePolicy kPolicy{.ttl = absl::Seconds(60)};
constexpr absl::Duration kRenewed = absl::Seconds(1000);

TEST(Lease, IsSuspectAfterOneTtlAndExpiredAfterTwo) {
  const std::pair<absl::Duration, LeaseHealth> cases[] = {
      {absl::ZeroDuration(), LeaseHealth::kActive},
      {absl::Seconds(60), LeaseHealth::kActive},
      {absl::Seconds(60) + absl::Nanoseconds(1), LeaseHealth::kSuspect},
      {absl::Seconds(120), LeaseHealth::kSuspect},
      {absl::Seconds(120) + absl::Nanoseconds(1), LeaseHealth::kExpired},
      {-absl::Seconds(60), LeaseHealth::kActive}};
  for (const auto& [age, expected] : cases) {
    SCOPED_TRACE(absl::FormatDuration(age));
    EXPECT_EQ(HealthOf(kRenewed, kRenewed + age, kPolicy), expected);
  }
}

TEST(Lease, ARestartAddsOneTtl) {
  const absl::Duration renewed = RenewedByRestart(kRenewed, kPolicy);
  EXPECT_EQ(HealthOf(renewed, kRenewed + absl::Seconds(120), kPolicy), LeaseHealth::kActive);
  EXPECT_EQ(HealthOf(renewed, kRenewed + absl::Seconds(180), kPolicy), LeaseHealth::kSuspect);
  EXPECT_EQ(HealthOf(renewed, kRenewed + absl::Seconds(181), kPolicy), LeaseHealth::kExpired);
}

TEST(Lease, AClosedConnectionMayBeMadeAgainFor15Seconds) {
  EXPECT_EQ(AttendanceGrace(kPolicy), absl::Seconds(15));
  EXPECT_EQ(AttendanceGrace({.ttl = absl::Seconds(30)}), absl::Seconds(15));
  EXPECT_EQ(AttendanceGrace({.ttl = absl::Seconds(2)}), absl::Seconds(4)) << "the TTL's own end";
}

TEST(Lease, SixBeatsFitInATtl) { EXPECT_EQ(HeartbeatInterval(kPolicy), absl::Seconds(10)); }

}  // namespace
}  // namespace hpo::server
