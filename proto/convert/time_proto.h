// Times and durations on the wire. InfinitePast is "not yet": it travels as an absent field.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace hpo {

// Saturates at the format's range, +-315,576,000,000 s (so does an infinite duration).
google::protobuf::Duration ToProto(absl::Duration duration);
absl::Duration FromProto(const google::protobuf::Duration& proto);

// `time` is finite.
google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& proto);

}  // namespace hpo
