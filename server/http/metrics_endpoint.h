// GET /metrics over HTTP, for a scrape by Prometheus and its like. cpp-httplib stops in
// metrics_endpoint.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "common/command_line/listen_address.h"

namespace httplib {
class Server;
}

namespace hpo::server {

// Thread-safe. Serves from Start until destruction, two requests at a time.
class MetricsEndpoint {
 public:
  // `text` makes the answer to one request; it is called by threads of the endpoint.
  // `address` is of TCP.
  //   Unavailable  the address is in use, or what else the system says
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const ListenAddress& address,
                                                                std::function<std::string()> text);
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  ~MetricsEndpoint();

  // "http://127.0.0.1:9100/metrics".
  const std::string& url() const { return url_; }

 private:
  MetricsEndpoint(std::unique_ptr<httplib::Server> server, const ListenAddress& bound);

  // Until stopping_, also after an accept that failed.
  void Serve(const ListenAddress& bound);

  const std::unique_ptr<httplib::Server> server_;
  const std::string url_;
  absl::Notification stopping_;
  absl::Notification ended_;
  std::thread thread_;
};

}  // namespace hpo::server
