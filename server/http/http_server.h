// HTTP/1.1 for the page, with or without TLS: Boost.Beast (docs/adr/039). Boost stops in
// http_server.cc.
//
// A stranger costs little: one thread serves all connections, each step of a request has its time,
// header and body have their most bytes, and a request is screened before its body is read. Where
// there is no room for another connection, the one that has been idle for longest makes it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/command_line/listen_address.h"
#include "common/tls/identity.h"
#include "server/http/http_message.h"

namespace hpo::server {

struct HttpServerOptions {
  ListenAddress listen;                     // of TCP
  const tls::Identity* identity = nullptr;  // null: no TLS; read while the server is made
  size_t most_connections = 1024;
  size_t most_of_one_host = 512;
  size_t most_header_bytes = size_t{16} << 10;
  size_t most_body_bytes = size_t{4} << 20;
  absl::Duration handshake_timeout = absl::Seconds(10);
  absl::Duration header_timeout = absl::Seconds(30);  // from the end of the answer before
  absl::Duration body_timeout = absl::Seconds(30);
  absl::Duration write_timeout = absl::Seconds(30);  // of an answer, or of a piece of one
};

// Thread-safe. One thread from Start to Stop.
class HttpServer {
 public:
  // `site` outlives the server.
  //   Unavailable  the address is in use, or what else the system says
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           HttpSite& site);
  HttpServer(const HttpServer&) = delete;
  ~HttpServer();

  // With the real port.
  const ListenAddress& address() const { return address_; }

  // Closes all connections; the address is free once it returns. Idempotent.
  void Stop();

 private:
  struct Loop;

  HttpServer(ListenAddress address, std::unique_ptr<Loop> loop);

  const ListenAddress address_;
  const std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace hpo::server
