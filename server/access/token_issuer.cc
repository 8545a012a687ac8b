#include "server/access/token_issuer.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr int kModeOfJoinFile = 0600;

absl::Status WriteLine(const std::string& path, const std::string& line) {
  DurableFile file(path, kModeOfJoinFile);
  HPO_RETURN_IF_ERROR(file.Create());
  HPO_RETURN_IF_ERROR(file.Write(line.data(), line.size()));
  HPO_RETURN_IF_ERROR(file.Write("\n", 1));
  return file.Commit();
}

// Empty: a loopback address, or of another family.
std::string TextOfAddress(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address != nullptr && address->sa_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    constexpr uint32_t kLoopbackNet = 127;
    if (ntohl(v4.s_addr) >> 24 == kLoopbackNet) return "";
    return inet_ntop(AF_INET, &v4, text.data(), text.size());
  }
  return "";
}

bool LeadsElsewhere(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return false;
  const absl::Cleanup free_it = [found] { freeaddrinfo(found); };
  return !TextOfAddress(found->ai_addr).empty();
}

std::string FirstAddress() {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return "";
  const absl::Cleanup free_it = [interfaces] { freeifaddrs(interfaces); };
  for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    if (std::string text = TextOfAddress(one->ifa_addr); !text.empty()) return text;
  }
  return "";
}

}  // namespace

absl::Status TokenIssuer::MakeFirstTokens() {
  if (!tokens_.empty()) return absl::OkStatus();
  for (const auto& [role, name] : kRoleNames) {
    HPO_ASSIGN_OR_RETURN(const NewToken made, Create(std::string(name), role, std::nullopt));
    HPO_RETURN_IF_ERROR(WriteLine(FileOf(made.token.name), JoinCommand(role, made.join)));
  }
  return absl::OkStatus();
}

absl::Status TokenIssuer::RefreshFiles() const {
  for (const TokenInfo& token : tokens_.List()) {
    const absl::StatusOr<std::string> line = ReadFile(FileOf(token.name));
    if (!line.ok()) continue;
    const absl::StatusOr<tls::JoinString> written = tls::ParseJoinString(*line);
    if (!written.ok()) {
      spdlog::warn("{}: {}", FileOf(token.name), std::string(written.status().message()));
      continue;
    }
    const tls::JoinString now = Joining(written->secret);
    if (*written == now) continue;
    HPO_RETURN_IF_ERROR(
        WriteLine(FileOf(token.name), JoinCommand(token.role, tls::FormatJoinString(now))));
  }
  return absl::OkStatus();
}

tls::JoinString TokenIssuer::Joining(const tls::Secret& secret) const {
  return {.certificate = options_.certificate,
          .secret = secret,
          .host = options_.host,
          .port = options_.port};
}

absl::StatusOr<NewToken> TokenIssuer::Create(const std::string& name, Role role,
                                             std::optional<absl::Duration> lifetime) {
  HPO_ASSIGN_OR_RETURN(
      const tls::Secret secret,
      tokens_.Create(name, role, ExpiryAfter(lifetime).value_or(absl::InfiniteFuture())));
  return Describe(name, secret);
}

absl::StatusOr<NewToken> TokenIssuer::Rotate(const std::string& name, absl::Duration grace,
                                             std::optional<absl::Duration> lifetime,
                                             uint64_t asking) {
  // Before the old secret ends: a worker whose connection is closed reads the file again, and ends
  // where it finds a secret that is refused.
  const auto write = [this, &name](const tls::Secret& secret) -> absl::Status {
    std::error_code error;
    if (!std::filesystem::exists(FileOf(name), error)) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const NewToken made, Describe(name, secret));
    return WriteLine(FileOf(name), JoinCommand(made.token.role, made.join));
  };
  HPO_ASSIGN_OR_RETURN(const tls::Secret secret,
                       tokens_.Rotate(name, grace, ExpiryAfter(lifetime), write));
  if (changed_) changed_(asking);
  return Describe(name, secret);
}

absl::Status TokenIssuer::Revoke(const std::string& name, uint64_t asking) {
  HPO_RETURN_IF_ERROR(tokens_.Revoke(name));
  if (changed_) changed_(asking);
  std::error_code error;
  std::filesystem::remove(FileOf(name), error);
  return absl::OkStatus();
}

std::string TokenIssuer::FileOf(const std::string& name) const {
  return absl::StrCat(options_.folder, "/join-", name);
}

absl::StatusOr<NewToken> TokenIssuer::Describe(const std::string& name,
                                               const tls::Secret& secret) const {
  NewToken made;
  made.join = tls::FormatJoinString(Joining(secret));
  for (TokenInfo& token : tokens_.List()) {
    if (token.name == name && token.revoked == absl::InfiniteFuture()) {
      made.token = std::move(token);
    }
  }
  return made;
}

std::optional<absl::Time> TokenIssuer::ExpiryAfter(std::optional<absl::Duration> lifetime) const {
  if (!lifetime) return std::nullopt;
  return clock_.Now() + *lifetime;
}

std::string JoinCommand(Role role, const std::string& join) {
  return absl::StrCat(role == Role::kWork ? "hpo-worker --join " : "hpo --join ", join);
}

std::string ReachableHost(const std::string& host) {
  if (host != "0.0.0.0" && host != "::") return host;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  if (LeadsElsewhere(name.data())) return name.data();
  const std::string address = FirstAddress();
  return address.empty() ? std::string(name.data()) : address;
}

}  // namespace hpo::server
