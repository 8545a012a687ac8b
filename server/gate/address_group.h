// Addresses of clients, and which of them count as one client.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo::server {

// The address and port at the other end of the socket, or what else it is: "unix", "gone".
std::string PeerAddressOf(int connection);

// Pure. Of "10.0.0.1:5" or "[2001:db8::1]:5": an IPv4 address, also one that is mapped into IPv6;
// of an IPv6 address the first 64 bits, as one machine may have all addresses below them.
std::string AddressGroupOf(absl::string_view address);

}  // namespace hpo::server
