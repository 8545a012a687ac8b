#include "proto/convert/access_proto.h"

#include <utility>

#include "common/base/status.h"
#include "proto/convert/time_proto.h"

namespace hpo {
namespace {

constexpr std::pair<Role, v1::AccessRole> kRoles[] = {{Role::kRead, v1::ACCESS_ROLE_READ},
                                                      {Role::kWork, v1::ACCESS_ROLE_WORK},
                                                      {Role::kWrite, v1::ACCESS_ROLE_WRITE},
                                                      {Role::kAdmin, v1::ACCESS_ROLE_ADMIN}};

}  // namespace

v1::AccessRole ToProto(Role role) {
  for (const auto& [value, proto] : kRoles) {
    if (value == role) return proto;
  }
  return v1::ACCESS_ROLE_UNSPECIFIED;
}

absl::StatusOr<Role> FromProto(v1::AccessRole role) {
  for (const auto& [value, proto] : kRoles) {
    if (proto == role) return value;
  }
  return absl::InvalidArgumentError("role: expected read, work, write or admin, got none");
}

v1::AccessToken ToProto(const TokenInfo& token) {
  v1::AccessToken proto;
  proto.set_name(token.name);
  proto.set_role(ToProto(token.role));
  *proto.mutable_created() = ToProto(token.created);
  if (token.expires != absl::InfiniteFuture()) *proto.mutable_expires() = ToProto(token.expires);
  if (token.revoked != absl::InfiniteFuture()) *proto.mutable_revoked() = ToProto(token.revoked);
  if (token.previous_until != absl::InfinitePast()) {
    *proto.mutable_previous_until() = ToProto(token.previous_until);
  }
  return proto;
}

absl::StatusOr<TokenInfo> FromProto(const v1::AccessToken& proto) {
  TokenInfo token{.name = proto.name(), .created = FromProto(proto.created())};
  HPO_ASSIGN_OR_RETURN(token.role, FromProto(proto.role()));
  if (proto.has_expires()) token.expires = FromProto(proto.expires());
  if (proto.has_revoked()) token.revoked = FromProto(proto.revoked());
  if (proto.has_previous_until()) token.previous_until = FromProto(proto.previous_until());
  return token;
}

}  // namespace hpo
