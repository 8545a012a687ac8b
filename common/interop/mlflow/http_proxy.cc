#include "common/interop/mlflow/http_proxy.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hpo {
namespace {

constexpr int kUsualPort = 1080;

bool IsExcepted(absl::string_view host, absl::string_view exceptions) {
  for (absl::string_view entry : absl::StrSplit(exceptions, absl::ByAnyChar(", "))) {
    if (entry == "*") return true;
    absl::ConsumePrefix(&entry, ".");
    if (entry.empty()) continue;
    if (absl::EqualsIgnoreCase(host, entry)) return true;
    if (absl::EndsWithIgnoreCase(host, absl::StrCat(".", entry))) return true;
  }
  return false;
}

absl::StatusOr<HttpProxy> ParseProxy(const std::string& name, absl::string_view value) {
  HttpProxy proxy{.port = kUsualPort};
  absl::string_view rest = absl::StripSuffix(value, "/");
  absl::ConsumePrefix(&rest, "http://");
  const size_t at = rest.rfind('@');
  if (at != absl::string_view::npos) {
    const std::pair<absl::string_view, absl::string_view> who =
        absl::StrSplit(rest.substr(0, at), absl::MaxSplits(':', 1));
    proxy.user = std::string(who.first);
    proxy.password = std::string(who.second);
    rest.remove_prefix(at + 1);
  }
  const size_t colon = rest.rfind(':');
  bool valid = !absl::StrContains(rest, "/");
  if (colon != absl::string_view::npos) {
    valid = valid && absl::SimpleAtoi(rest.substr(colon + 1), &proxy.port) && proxy.port > 0 &&
            proxy.port < 65536;
    rest = rest.substr(0, colon);
  }
  proxy.host = std::string(rest);
  if (valid && !rest.empty()) return proxy;
  // The value may hold a password.
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected http://[user:password@]host[:port], got '",
                   at == absl::string_view::npos ? value : "(a value with a user)", "'"));
}

}  // namespace

absl::StatusOr<std::optional<HttpProxy>> ProxyFor(
    absl::string_view scheme, absl::string_view host,
    absl::FunctionRef<std::string(const std::string& name)> variable) {
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    if (IsExcepted(host, variable(name))) return std::nullopt;
  }
  const std::vector<std::string> names =
      scheme == "https"
          ? std::vector<std::string>{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}
          : std::vector<std::string>{"http_proxy", "all_proxy", "ALL_PROXY"};
  for (const std::string& name : names) {
    const std::string value = variable(name);
    if (!value.empty()) return ParseProxy(name, value);
  }
  return std::nullopt;
}

}  // namespace hpo
