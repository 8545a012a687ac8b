// HPO_RPC_ALLOW(context): the first line of each method: ends the call unless its caller may make
// it; `hpo_permit` stands until the method returns. The class has `access_` and kService.
// HPO_RPC_CHECK(*request): ends the call with InvalidArgument where a field is not what it may be.
// HPO_RPC_ASSIGN(const Study study, api_.GetStudy(name)): assigns, or ends the call with the
// status. Requests fail in two places, conversion and the api; both end the call with the same
// cast.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/request_check.h"
#include "server/access/access_control.h"

namespace hpo::server {

// Who makes a call, as AccessControl takes it: the connection, or, for a call that comes from
// within the process (server/json), whom the page's server has admitted. What a client of gRPC
// writes under kPeerKey by itself does not count: it has a connection, and it cannot know a name
// that AccessControl::EnterPage gave.
inline std::string PeerOf(const grpc::ServerContextBase& context, const AccessControl& access) {
  const std::string connection = context.peer();
  for (const char* const transport : {"ipv4:", "ipv6:", "unix:", "unix-abstract:", "vsock:"}) {
    if (absl::StartsWith(connection, transport)) return connection;
  }
  const auto named = context.client_metadata().find(kPeerKey);
  if (named == context.client_metadata().end()) return connection;
  const std::string name(named->second.data(), named->second.size());
  return access.IsOfPage(name) ? name : connection;
}

}  // namespace hpo::server

#define HPO_RPC_ALLOW(context)                                                      \
  const absl::StatusOr<AccessControl::Permit> hpo_permit =                          \
      access_.Allow(absl::StrCat(kService, __func__), PeerOf(*(context), access_)); \
  if (!hpo_permit.ok()) return ToGrpc(hpo_permit.status())

#define HPO_RPC_RETURN_IF_ERROR(expression)                               \
  do {                                                                    \
    if (const absl::Status hpo_status = (expression); !hpo_status.ok()) { \
      return ToGrpc(hpo_status);                                          \
    }                                                                     \
  } while (false)

#define HPO_RPC_CHECK(request) HPO_RPC_RETURN_IF_ERROR(CheckRequest(request))

#define HPO_RPC_ADMIT(context, request) \
  HPO_RPC_ALLOW(context);               \
  HPO_RPC_CHECK(request)

#define HPO_RPC_ASSIGN(declaration, expression) \
  HPO_RPC_ASSIGN_IMPL(HPO_STATUS_CONCAT(hpo_rpc_status_or_, __LINE__), declaration, expression)
#define HPO_RPC_ASSIGN_IMPL(result, declaration, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return ToGrpc(result.status());          \
  declaration = *std::move(result)
