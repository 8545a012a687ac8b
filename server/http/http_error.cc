#include "server/http/http_error.h"

#include "nlohmann/json.hpp"

namespace hpo::server {

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string ErrorJson(absl::string_view code, absl::string_view message) {
  nlohmann::ordered_json error;
  error["code"] = std::string(code);
  error["message"] = std::string(message);
  return error.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

HttpAnswer ErrorResponse(int status, absl::string_view code, absl::string_view message) {
  return {.status = status,
          .content_type = "application/json",
          .headers = {{"Cache-Control", "no-store"}},
          .body = ErrorJson(code, message) + "\n"};
}

HttpAnswer ErrorResponse(const absl::Status& status) {
  return ErrorResponse(HttpStatusOf(status.code()), absl::StatusCodeToString(status.code()),
                       status.message());
}

}  // namespace hpo::server
