#include "proto/convert/time_proto.h"

#include <algorithm>

namespace hpo {
namespace {

constexpr absl::Duration kLongest = absl::Seconds(315'576'000'000);

}  // namespace

google::protobuf::Duration ToProto(absl::Duration duration) {
  absl::Duration rest = std::clamp(duration, -kLongest, kLongest);
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::IDivDuration(rest, absl::Nanoseconds(1), &rest)));
  return proto;
}

absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounds down, as the format asks
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds);
  proto.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace hpo
