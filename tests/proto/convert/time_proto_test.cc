#include "proto/convert/time_proto.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace hpo {
namespace {

TEST(TimeProto, DurationsRoundTrip) {
  for (const absl::Duration duration :
       {absl::ZeroDuration(), absl::Seconds(60), absl::Milliseconds(1500), absl::Nanoseconds(1),
        -absl::Milliseconds(1500), absl::Hours(24 * 365)}) {
    SCOPED_TRACE(absl::FormatDuration(duration));
    EXPECT_EQ(FromProto(ToProto(duration)), duration);
  }
}

TEST(TimeProto, ANegativeDurationHasBothPartsNegative) {
  const google::protobuf::Duration proto = ToProto(-absl::Milliseconds(1500));
  EXPECT_EQ(proto.seconds(), -1);
  EXPECT_EQ(proto.nanos(), -500'000'000);
}

TEST(TimeProto, InfiniteDurationsSaturate) {
  EXPECT_EQ(ToProto(absl::InfiniteDuration()).seconds(), int64_t{315'576'000'000});
  EXPECT_EQ(ToProto(-absl::InfiniteDuration()).seconds(), int64_t{-315'576'000'000});
}

TEST(TimeProto, TimesRoundTripAndKeepNanosPositive) {
  for (const absl::Time time :
       {absl::UnixEpoch(), absl::FromUnixSeconds(1'700'000'000) + absl::Nanoseconds(7),
        absl::UnixEpoch() - absl::Milliseconds(1)}) {
    SCOPED_TRACE(absl::FormatTime(time));
    const google::protobuf::Timestamp proto = ToProto(time);
    EXPECT_GE(proto.nanos(), 0);
    EXPECT_EQ(FromProto(proto), time);
  }
}

}  // namespace
}  // namespace hpo
