// Whether a request comes from the page itself, or from a program that names this server: what
// another site makes a browser send is refused, also where a name of that site leads to this
// address (DNS rebinding). Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace hpo::server {

// `names`: of this server, in lower case, beside "localhost" and every IP address: a browser
// resolves neither, so no other site can take their place.
//   InvalidArgument   there is no Host, or it cannot be read
//   PermissionDenied  Host names another machine, or the request comes from another site; says what
//                     to do
absl::Status CheckOrigin(const RequestHead& head, const std::vector<std::string>& names);

// The host of "host:port" or "[::1]:8080", in lower case, without brackets; empty: it has another
// form.
std::string HostNamedIn(absl::string_view host_and_port);

}  // namespace hpo::server
