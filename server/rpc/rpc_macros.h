// HPO_RPC_ALLOW(context): the first line of each method: ends the call unless its caller may make
// it; `hpo_permit` stands until the method returns. The class has `access_` and kService.
// HPO_RPC_CHECK(*request): ends the call with InvalidArgument where a field is not what it may be.
// HPO_RPC_ASSIGN(const Study study, api_.GetStudy(name)): assigns, or ends the call with the
// status. Requests fail in two places, conversion and the api; both end the call with the same
// cast.
#pragma once

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/request_check.h"
#include "server/access/access_control.h"

#define HPO_RPC_ALLOW(context)                                            \
  const absl::StatusOr<AccessControl::Permit> hpo_permit =                \
      access_.Allow(absl::StrCat(kService, __func__), (context)->peer()); \
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
