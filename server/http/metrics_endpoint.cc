#include "server/http/metrics_endpoint.h"

#include <httplib.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/http/metrics.h"

namespace hpo::server {
namespace {

constexpr char kPath[] = "/metrics";
constexpr size_t kNumThreads = 2;
constexpr int kSecondsOfSilence = 5;
constexpr size_t kMostBytesOfBody = 4096;
constexpr absl::Duration kBindAgain = absl::Seconds(1);

// Not the library's SO_REUSEPORT, with which two servers share a port without a word.
void TakeUpAClosedPort(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const ListenAddress& address, std::function<std::string()> text) {
  HPO_RETURN_IF_ERROR(CheckFree(address));
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool(kNumThreads); };
  server->set_socket_options(TakeUpAClosedPort);
  server->set_read_timeout(kSecondsOfSilence);
  server->set_write_timeout(kSecondsOfSilence);
  server->set_keep_alive_max_count(1);
  server->set_payload_max_length(kMostBytesOfBody);
  server->Get(kPath, [text = std::move(text)](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(text(), kMetricsContentType.data());
  });
  ListenAddress bound = address;
  if (address.port == 0) {
    bound.port = server->bind_to_any_port(address.host);
  } else if (!server->bind_to_port(address.host, address.port)) {
    bound.port = -1;
  }
  if (bound.port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("--metrics: cannot listen at ", FormatListenAddress(address)));
  }
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(server), bound));
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<httplib::Server> server,
                                 const ListenAddress& bound)
    : server_(std::move(server)),
      url_(absl::StrCat("http://", FormatListenAddress(bound), kPath)),
      thread_([this, bound] { Serve(bound); }) {}

void MetricsEndpoint::Serve(const ListenAddress& bound) {
  bool is_bound = true;
  do {
    if (is_bound) server_->listen_after_bind();
    if (stopping_.WaitForNotificationWithTimeout(kBindAgain)) break;
    is_bound = server_->bind_to_port(bound.host, bound.port);
  } while (true);
  ended_.Notify();
}

MetricsEndpoint::~MetricsEndpoint() {
  stopping_.Notify();
  // stop() is for a server that listens, which the thread may be about to do.
  bool stopped = false;
  while (!ended_.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
    if (stopped || !server_->is_running()) continue;
    server_->stop();
    stopped = true;
  }
  thread_.join();
}

}  // namespace hpo::server
