// Errors as the page's API tells them: an HTTP status and {"code": "NOT_FOUND", "message": "..."}.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace hpo::server {

// As google.rpc.Code's documentation maps gRPC's codes.
int HttpStatusOf(absl::StatusCode code);

// {"code":"NOT_FOUND","message":"..."}; bytes that are not UTF-8 are replaced.
std::string ErrorJson(absl::string_view code, absl::string_view message);

HttpAnswer ErrorResponse(const absl::Status& status);
HttpAnswer ErrorResponse(int status, absl::string_view code, absl::string_view message);

}  // namespace hpo::server
