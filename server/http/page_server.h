// The page and its API over HTTP, put together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/command_line/listen_address.h"
#include "common/tls/identity.h"
#include "grpcpp/grpcpp.h"
#include "server/access/access_control.h"
#include "server/access/page_sessions.h"
#include "server/access/token_registry.h"
#include "server/api/study_queries.h"
#include "server/http/event_hub.h"
#include "server/http/http_server.h"
#include "server/http/page_api.h"
#include "server/json/json_gateway.h"

namespace hpo::server {

struct PageOptions {
  ListenAddress listen;                     // of TCP
  const tls::Identity* identity = nullptr;  // null: no TLS and no tokens
  std::string key_folder;                   // of PageSessions, with TLS
  std::vector<std::string> names;           // of this server, beside its addresses and localhost
};

// What the page is made of. All outlive it.
struct PageParts {
  std::shared_ptr<grpc::Channel> channel;  // of the services, within the process
  const StudyQueries& queries;
  AccessControl& access;
  const TokenRegistry& tokens;
  const Clock& clock;
  std::function<std::string()> trouble;  // see PageSite
};

// Thread-safe. Serves from Start to Stop.
class PageServer {
 public:
  //   Unavailable  the address is in use
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const PageOptions& options,
                                                           PageParts parts);
  PageServer(const PageServer&) = delete;
  ~PageServer();

  // "http://127.0.0.1:8080/", as people open it.
  const std::string& url() const { return url_; }

  // Ends streams and calls. Idempotent.
  void Stop();

 private:
  PageServer(PageParts parts, std::unique_ptr<PageSessions> sessions,
             const std::vector<std::string>& names);

  std::unique_ptr<PageSessions> sessions_;  // null: no TLS
  std::unique_ptr<JsonGateway> gateway_;
  std::unique_ptr<EventHub> hub_;
  PageApi api_;
  std::unique_ptr<HttpServer> http_;
  std::string url_;
};

}  // namespace hpo::server
