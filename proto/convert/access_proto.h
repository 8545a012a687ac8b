// Tokens on the wire (conventions: params_proto.h).
#pragma once

#include "absl/status/statusor.h"
#include "common/protocol/access.h"
#include "hpo/v1/admin.pb.h"

namespace hpo {

v1::AccessRole ToProto(Role role);
//   InvalidArgument  no role
absl::StatusOr<Role> FromProto(v1::AccessRole role);

v1::AccessToken ToProto(const TokenInfo& token);
//   InvalidArgument  no role
absl::StatusOr<TokenInfo> FromProto(const v1::AccessToken& proto);

}  // namespace hpo
