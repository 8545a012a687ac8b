// Search spaces between their value types (common/space/search_space.h) and the wire. Conventions:
// params_proto.h.
#pragma once

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "hpo/v1/study.pb.h"
#include "proto/convert/message_fields.h"

namespace hpo {

// An integer step of 0 reads as 1.
v1::Domain ToProto(const Domain& domain);
absl::StatusOr<Domain> FromProto(const v1::Domain& proto);

// Model facts do not travel: conditions on them are decided by the server.
v1::SearchSpace ToProto(const SearchSpace& space);
absl::StatusOr<SearchSpace> FromProto(const v1::SearchSpace& proto);

template <>
struct MessageForm<Domain> {
  using Wire = v1::Domain;
  static Wire Write(const Domain& domain) { return ToProto(domain); }
  static absl::StatusOr<Domain> Read(const Wire& proto) { return FromProto(proto); }
};
template <>
struct MessageForm<SearchSpace> {
  using Wire = v1::SearchSpace;
  static Wire Write(const SearchSpace& space) { return ToProto(space); }
  static absl::StatusOr<SearchSpace> Read(const Wire& proto) { return FromProto(proto); }
};

}  // namespace hpo
