// One request over HTTP or HTTPS, and its answer. cpp-httplib stops in http_client.cc.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hpo {

struct HttpRequest {
  std::string method;  // "GET", "POST"
  std::string url;     // "http://host:port/path?query", escaped
  std::string body;    // sent as JSON; empty: none
};

struct HttpResponse {
  int status = 0;  // 200, 404, ...
  std::string body;
};

// One thread at a time.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Any status is an answer; a redirection is not followed.
  //   Unavailable  nobody answered in time, or the answer broke off; says why
  //   Cancelled    given up from outside
  virtual absl::StatusOr<HttpResponse> Send(const HttpRequest& request) = 0;

  // `text` as part of a query.
  virtual std::string Escape(const std::string& text) = 0;
};

struct HttpOptions {
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration timeout = absl::Seconds(30);  // of a whole request, but for the look-up of a name
  std::string token;                           // sent as a bearer; empty: none
  std::string user;                            // with `password`, basic authentication; empty: none
  std::string password;
  const std::atomic<bool>* cancelled = nullptr;  // ends a request within a second; may be null
};

// Keeps its connection open between requests to one server. Goes through the proxy that the
// environment names (http_proxy.h). HTTPS believes the system's certificate authorities, or those
// of SSL_CERT_FILE and SSL_CERT_DIR.
std::unique_ptr<HttpClient> MakeHttpClient(const HttpOptions& options);

}  // namespace hpo
