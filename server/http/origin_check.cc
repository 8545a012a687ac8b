#include "server/http/origin_check.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

constexpr size_t kMostShown = 100;

std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMostShown)), "'");
}

bool IsPort(absl::string_view text) {
  int port = 0;
  return absl::SimpleAtoi(text, &port) && port > 0 && port <= 65535;
}

bool IsNameOrAddress(absl::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ||
           c == ':';
  });
}

bool IsIpAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

absl::Status CheckHost(absl::string_view said, const std::vector<std::string>& names) {
  const std::string host = HostNamedIn(said);
  if (host.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Host: expected a host and a port, got ", Shown(said)));
  }
  const bool is_ours = host == "localhost" || IsIpAddress(host) ||
                       std::find(names.begin(), names.end(), host) != names.end();
  if (is_ours) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "Host: expected localhost, an IP address or a name of this server, got ", Shown(said),
      "; if that is a name of this server, start it with --advertise ", host));
}

// A link from another site to a page is followed; what that site fetches, frames or posts is not
// answered.
bool IsFollowedLink(const RequestHead& head) {
  return head.method == "GET" && head.Header("sec-fetch-mode") == "navigate" &&
         head.Header("sec-fetch-dest") == "document" && !absl::StartsWith(head.path, "/api/");
}

}  // namespace

std::string HostNamedIn(absl::string_view text) {
  absl::string_view host = text;
  absl::string_view port;
  if (absl::StartsWith(text, "[")) {
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return "";
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else if (const size_t colon = text.find(':'); colon != absl::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  const bool has_port = !port.empty();
  if (has_port && (port.front() != ':' || !IsPort(port.substr(1)))) return "";
  return IsNameOrAddress(host) ? absl::AsciiStrToLower(host) : "";
}

absl::Status CheckOrigin(const RequestHead& head, const std::vector<std::string>& names) {
  const std::string host = head.Header("host");
  HPO_RETURN_IF_ERROR(CheckHost(host, names));
  const std::string origin = head.Header("origin");
  const std::string own = absl::StrCat(head.has_tls ? "https://" : "http://", host);
  if (!origin.empty() && !absl::EqualsIgnoreCase(origin, own)) {
    return absl::PermissionDeniedError(absl::StrCat("Origin: expected the page's own, ", own,
                                                    ", got ", Shown(origin),
                                                    "; other sites may not call this server"));
  }
  const std::string site = head.Header("sec-fetch-site");
  const bool is_own = site.empty() || site == "same-origin" || site == "none";
  if (is_own || IsFollowedLink(head)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("Sec-Fetch-Site: expected same-origin or none, got ", Shown(site),
                   "; other sites may not call this server"));
}

}  // namespace hpo::server
