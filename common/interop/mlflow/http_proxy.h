// Which proxy a request goes through, by the environment variables that curl and Python obey.
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace hpo {

struct HttpProxy {
  std::string host;
  int port = 0;
  std::string user;  // with `password`; empty: none
  std::string password;

  bool operator==(const HttpProxy&) const = default;
};

// For a request of `scheme` ("http", "https") to `host`: http_proxy (in small letters only, because
// a web server hands a client's header on as HTTP_PROXY), https_proxy or HTTPS_PROXY, else
// all_proxy or ALL_PROXY; none where no_proxy or NO_PROXY lists the host, a domain that it ends
// with, or "*". `variable` gives a variable's value, empty where it is not set.
//   InvalidArgument  the value is not http://[user:password@]host[:port]
absl::StatusOr<std::optional<HttpProxy>> ProxyFor(
    absl::string_view scheme, absl::string_view host,
    absl::FunctionRef<std::string(const std::string& name)> variable);

}  // namespace hpo
