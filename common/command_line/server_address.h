// Where a server listens, as people write it.
#pragma once

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hpo {

constexpr char kDefaultPort[] = "50051";

// Whether it is where hpo-server listens and hpo asks where nothing else is said.
inline bool IsUsualAddress(absl::string_view address) {
  return address == absl::StrCat("127.0.0.1:", kDefaultPort);
}

// As gRPC takes it: a host without a port ("localhost", "::1", "[::1]") gets the default one; what
// has a port, or a scheme ("unix:/path"), stays as it is.
inline std::string WithDefaultPort(absl::string_view address) {
  const size_t first = address.find(':');
  const bool bracketed = absl::StartsWith(address, "[");
  const bool bare_ip6 =
      !bracketed && first != absl::string_view::npos &&
      address.find(':', first + 1) != absl::string_view::npos &&
      address.find_first_not_of("0123456789abcdefABCDEF:.") == absl::string_view::npos;
  if (bare_ip6) return absl::StrCat("[", address, "]:", kDefaultPort);
  const bool no_port = bracketed ? absl::EndsWith(address, "]") : first == absl::string_view::npos;
  return no_port && !address.empty() ? absl::StrCat(address, ":", kDefaultPort)
                                     : std::string(address);
}

}  // namespace hpo
