#include "common/interop/mlflow/http_client.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "common/interop/mlflow/http_proxy.h"

namespace hpo {
namespace {

constexpr size_t kLargestAnswer = size_t{64} << 20;
constexpr absl::Duration kWatchTick = absl::Milliseconds(100);

// Where the distributions keep the certificate authorities that the system believes: Debian and
// Ubuntu, Fedora and RHEL, openSUSE, others. OpenSSL itself looks where the distribution that
// compiled it keeps them.
constexpr const char* kAuthorities[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt",
                                        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

std::string FromEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// Empty: OpenSSL's own, which SSL_CERT_FILE and SSL_CERT_DIR replace.
absl::StatusOr<std::string> AuthoritiesFile() {
  if (!FromEnvironment("SSL_CERT_FILE").empty() || !FromEnvironment("SSL_CERT_DIR").empty()) {
    return "";
  }
  for (const char* file : kAuthorities) {
    if (access(file, R_OK) == 0) return file;
  }
  return absl::UnavailableError(
      absl::StrCat("no certificate authorities to check the server by: expected ", kAuthorities[0],
                   " or another system's file (install ca-certificates), or SSL_CERT_FILE"));
}

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // an IPv6 address without its brackets
  std::string server;  // "http://host:port", what a connection leads to
  std::string target;  // "/path?query"
};

absl::StatusOr<Url> ParseUrl(const std::string& text) {
  Url url;
  const size_t scheme_end = text.find("://");
  if (scheme_end != std::string::npos) url.scheme = text.substr(0, scheme_end);
  if (url.scheme == "http" || url.scheme == "https") {
    const size_t begin = scheme_end + 3;
    const size_t end = std::min(text.size(), text.find_first_of("/?", begin));
    const std::string authority = text.substr(begin, end - begin);
    const size_t colon = authority.find_last_of(":]");
    const bool has_port = colon != std::string::npos && authority[colon] == ':';
    int port = 1;
    const bool valid_port = !has_port || absl::SimpleAtoi(authority.substr(colon + 1), &port);
    url.host = has_port ? authority.substr(0, colon) : authority;
    if (absl::StartsWith(url.host, "[") && absl::EndsWith(url.host, "]")) {
      url.host = url.host.substr(1, url.host.size() - 2);
    }
    url.server = absl::StrCat(url.scheme, "://", authority);
    url.target = absl::StrCat(end < text.size() && text[end] == '/' ? "" : "/", text.substr(end));
    if (valid_port && port > 0 && port < 65536 && !url.host.empty()) return url;
  }
  return absl::UnavailableError(
      absl::StrCat("expected a URL http://host:port/... or https://..., got '", text, "'"));
}

// Ends a request from outside, in whatever it waits: a thread that shuts the request's socket down.
class RequestWatch {
 public:
  explicit RequestWatch(const HttpOptions& options)
      : deadline_(clock_.Monotonic() + options.timeout),
        cancelled_(options.cancelled),
        thread_([this] { Run(); }) {}
  RequestWatch(const RequestWatch&) = delete;
  RequestWatch& operator=(const RequestWatch&) = delete;

  ~RequestWatch() {
    {
      absl::MutexLock lock(&mutex_);
      over_ = true;
    }
    thread_.join();
  }

  bool IsCancelled() const { return cancelled_ != nullptr && cancelled_->load(); }
  bool IsLate() const { return clock_.Monotonic() >= deadline_; }

  // Call once a socket is there, and once before it is closed with -1.
  void SetSocket(int socket) {
    absl::MutexLock lock(&mutex_);
    socket_ = socket;
  }

 private:
  void Run() {
    absl::MutexLock lock(&mutex_);
    while (!AwaitSteadily(mutex_, absl::Condition(&over_), kWatchTick)) {
      if (socket_ >= 0 && (IsCancelled() || IsLate())) shutdown(socket_, SHUT_RDWR);
    }
  }

  const SystemClock clock_;
  const absl::Duration deadline_;
  const std::atomic<bool>* const cancelled_;
  absl::Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  int socket_ ABSL_GUARDED_BY(mutex_) = -1;
  std::thread thread_;
};

class HttplibClient final : public HttpClient {
 public:
  explicit HttplibClient(const HttpOptions& options) : options_(options) {}
  ~HttplibClient() override { CloseSocket(); }

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override {
    HPO_ASSIGN_OR_RETURN(const Url url, ParseUrl(request.url));
    if (connection_ == nullptr || server_ != url.server) HPO_RETURN_IF_ERROR(Connect(url));
    RequestWatch watch(options_);
    if (watch.IsCancelled()) return absl::CancelledError("the request was given up");
    watch.SetSocket(socket_);
    watch_ = &watch;
    absl::StatusOr<HttpResponse> response = Exchange(url, request, watch);
    watch_ = nullptr;
    // What was shut down is not to be used again.
    if (!response.ok()) connection_.reset();
    return response;
  }

  std::string Escape(const std::string& text) override {
    std::string escaped;
    for (const char byte : text) {
      const bool plain =
          absl::ascii_isalnum(static_cast<unsigned char>(byte)) || absl::StrContains("-._~", byte);
      absl::StrAppend(&escaped,
                      plain ? std::string(1, byte)
                            : absl::StrCat("%", absl::AsciiStrToUpper(absl::BytesToHexString(
                                                    absl::string_view(&byte, 1)))));
    }
    return escaped;
  }

 private:
  absl::Status Connect(const Url& url) {
    connection_.reset();
    const absl::StatusOr<std::optional<HttpProxy>> found =
        ProxyFor(url.scheme, url.host, FromEnvironment);
    if (!found.ok()) return absl::UnavailableError(found.status().message());
    const std::optional<HttpProxy>& proxy = *found;
    auto connection = std::make_unique<httplib::Client>(url.server);
    connection->set_keep_alive(true);
    connection->set_url_encode(false);
    const auto connect_timeout = absl::ToChronoMicroseconds(options_.connect_timeout);
    const auto timeout = absl::ToChronoMicroseconds(options_.timeout);
    connection->set_connection_timeout(connect_timeout);
    connection->set_read_timeout(timeout);
    connection->set_write_timeout(timeout);
    connection->set_socket_options([this](socket_t socket) { KeepSocket(socket); });
    if (url.scheme == "https") {
      HPO_ASSIGN_OR_RETURN(authorities_, AuthoritiesFile());
      if (!authorities_.empty()) connection->set_ca_cert_path(authorities_);
    }
    if (!options_.token.empty()) {
      connection->set_bearer_token_auth(options_.token);
    } else if (!options_.user.empty()) {
      connection->set_basic_auth(options_.user, options_.password);
    }
    if (proxy.has_value()) {
      connection->set_proxy(proxy->host, proxy->port);
      if (!proxy->user.empty()) {
        connection->set_proxy_basic_auth(proxy->user, proxy->password);
      }
    }
    connection_ = std::move(connection);
    server_ = url.server;
    return absl::OkStatus();
  }

  absl::StatusOr<HttpResponse> Exchange(const Url& url, const HttpRequest& request,
                                        const RequestWatch& watch) {
    HttpResponse response;
    httplib::Request asked;
    asked.method = request.method;
    asked.path = url.target;
    asked.body = request.body;
    asked.set_header("Content-Type", "application/json");
    asked.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      if (response.body.size() + size > kLargestAnswer) return false;
      response.body.append(data, size);
      return true;
    };
    httplib::Response answered;
    httplib::Error error = httplib::Error::Success;
    const bool complete = connection_->send(asked, answered, error);
    if (watch.IsCancelled()) return absl::CancelledError("the request was given up");
    if (complete) {
      response.status = answered.status;
      return response;
    }
    if (watch.IsLate()) {
      return absl::UnavailableError(absl::StrCat(url.server, ": no whole answer within ",
                                                 absl::FormatDuration(options_.timeout)));
    }
    if (error == httplib::Error::Canceled) {
      return absl::UnavailableError(
          absl::StrCat(url.server, ": an answer of more than ", kLargestAnswer >> 20, " MiB"));
    }
    return absl::UnavailableError(absl::StrCat(url.server, ": ", Reason(error)));
  }

  std::string Reason(httplib::Error error) const {
    if (error != httplib::Error::SSLServerVerification) return httplib::to_string(error);
    return absl::StrCat(
        "its certificate is not valid: ",
        X509_verify_cert_error_string(connection_->get_openssl_verify_result()),
        " (certificate authorities: ",
        authorities_.empty() ? "those of SSL_CERT_FILE and SSL_CERT_DIR" : authorities_, ")");
  }

  // A number of its own for the connection, which stays valid whatever cpp-httplib closes.
  void KeepSocket(int socket) {
    const int kept = dup(socket);
    if (watch_ != nullptr) watch_->SetSocket(kept);
    CloseSocket();
    socket_ = kept;
  }

  void CloseSocket() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  const HttpOptions options_;
  std::unique_ptr<httplib::Client> connection_;
  std::string server_;       // that it leads to
  std::string authorities_;  // a file; empty: OpenSSL's own
  int socket_ = -1;
  RequestWatch* watch_ = nullptr;  // of the request under way
};

}  // namespace

std::unique_ptr<HttpClient> MakeHttpClient(const HttpOptions& options) {
  return std::make_unique<HttplibClient>(options);
}

}  // namespace hpo
