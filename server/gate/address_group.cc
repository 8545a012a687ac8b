#include "server/gate/address_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hpo::server {
namespace {

constexpr size_t kNetworkBytes = 8;

}  // namespace

std::string PeerAddressOf(int connection) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "gone";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return absl::StrCat(text.data(), ":", ntohs(v4.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return absl::StrCat("[", text.data(), "]:", ntohs(v6.sin6_port));
  }
  return "unix";
}

std::string AddressGroupOf(absl::string_view address) {
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (!absl::ConsumePrefix(&host, "[")) return std::string(host);
  absl::ConsumeSuffix(&host, "]");
  in6_addr ip{};
  if (inet_pton(AF_INET6, std::string(host).c_str(), &ip) != 1) return std::string(host);
  if (IN6_IS_ADDR_V4MAPPED(&ip)) return std::string(host.substr(host.rfind(':') + 1));
  std::fill(std::begin(ip.s6_addr) + kNetworkBytes, std::end(ip.s6_addr), uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  return absl::StrCat(inet_ntop(AF_INET6, &ip, text.data(), text.size()), "/64");
}

}  // namespace hpo::server
