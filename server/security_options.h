// See docs/security.md.
#pragma once

#include <string>

namespace hpo::server {

// How programs on other machines reach the server.
struct SecurityOptions {
  bool insecure = false;         // plaintext also where other machines can connect
  bool tls_on_loopback = false;  // TLS also where they cannot
  std::string certificate_file;  // empty: one of the server's own
  std::string key_file;
  std::string client_ca_file;  // empty: tokens alone admit clients
  std::string advertise;       // HOST or HOST:PORT for join strings; empty: from `listen`
};

}  // namespace hpo::server
