#include "common/interop/mlflow/http_client.h"

#include <httplib.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "127.0.0.1";

// Serves on a free port until it ends.
class TestServer {
 public:
  explicit TestServer(std::unique_ptr<httplib::Server> server)
      : server_(std::move(server)), port_(BoundPort(*server_)) {}
  ~TestServer() { Stop(); }

  // Before anything goes away that its handlers use.
  void Stop() {
    server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  void Start() {
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }
  httplib::Server* operator->() { return server_.get(); }
  int port() const { return port_; }

 private:
  // Not with the library's SO_REUSEPORT: two tests at a time would get one port.
  static int BoundPort(httplib::Server& server) {
    server.set_socket_options([](int) {});
    server.set_keep_alive_timeout(1);  // seconds that Stop waits for an idle connection
    return server.bind_to_any_port(kHost);
  }

  const std::unique_ptr<httplib::Server> server_;
  const int port_;
  std::thread thread_;
};

// Sets a variable of the environment until it ends.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

class HttpClientTest : public ::testing::Test {
 protected:
  std::string Url(const std::string& target) const {
    return absl::StrCat("http://", kHost, ":", server_.port(), target);
  }

  TestServer server_{std::make_unique<httplib::Server>()};
};

TEST_F(HttpClientTest, SendsMethodPathQueryBodyAndWhoAsks) {
  absl::Mutex mutex;
  std::vector<httplib::Request> seen;
  const auto keep = [&](const httplib::Request& request, httplib::Response& response) {
    absl::MutexLock lock(&mutex);
    seen.push_back(request);
    response.status = request.method == "POST" ? 409 : 200;
    response.set_content("answer", "text/plain");
  };
  server_->Get("/a/b", keep);
  server_->Post("/", keep);
  server_.Start();

  const auto bearer = MakeHttpClient({.token = "secret"});
  const auto got = bearer->Send({.method = "GET", .url = Url("/a/b?name=x%20y%2Fz")});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "answer");
  const auto basic = MakeHttpClient({.user = "me", .password = "pass"});
  const auto posted = basic->Send({.method = "POST", .url = Url(""), .body = R"({"k": 1})"});
  ASSERT_TRUE(posted.ok()) << posted.status();
  EXPECT_EQ(posted->status, 409) << "any status is an answer";

  absl::MutexLock lock(&mutex);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].target, "/a/b?name=x%20y%2Fz") << "as it was given";
  EXPECT_EQ(seen[0].get_param_value("name"), "x y/z");
  EXPECT_EQ(seen[0].get_header_value("Authorization"), "Bearer secret");
  EXPECT_EQ(seen[1].body, R"({"k": 1})");
  EXPECT_EQ(seen[1].get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(seen[1].get_header_value("Authorization"), "Basic bWU6cGFzcw==");
}

TEST_F(HttpClientTest, KeepsItsConnectionAndMakesANewOneWhereTheServerEndedIt) {
  absl::Mutex mutex;
  std::vector<int> ports;
  server_->set_keep_alive_max_count(3);
  server_->Get("/", [&](const httplib::Request& request, httplib::Response&) {
    absl::MutexLock lock(&mutex);
    ports.push_back(request.remote_port);
  });
  server_.Start();
  const auto client = MakeHttpClient({});
  for (int i = 0; i < 5; ++i) {
    const auto answer = client->Send({.method = "GET", .url = Url("/")});
    ASSERT_TRUE(answer.ok()) << i << ": " << answer.status();
  }
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(ports[0], ports[2]);
  EXPECT_NE(ports[2], ports[3]);
}

TEST_F(HttpClientTest, ARedirectionIsNotFollowed) {
  server_->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_redirect("/elsewhere");
  });
  server_.Start();
  const auto answer = MakeHttpClient({})->Send({.method = "GET", .url = Url("/")});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 302);
}

TEST_F(HttpClientTest, TheTimeOfAWholeRequestIsBounded) {
  absl::Notification over;
  server_->Get("/silent", [&](const httplib::Request&, httplib::Response&) {
    over.WaitForNotificationWithTimeout(absl::Seconds(20));
  });
  server_->Get("/drip", [&](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("text/plain", [&](size_t, httplib::DataSink& sink) {
      return !over.WaitForNotificationWithTimeout(absl::Milliseconds(50)) && sink.write("x", 1);
    });
  });
  server_.Start();
  const SystemClock clock;
  for (const char* target : {"/silent", "/drip"}) {
    const absl::Duration start = clock.Monotonic();
    const auto client = MakeHttpClient({.timeout = absl::Milliseconds(300)});
    const absl::Status status = client->Send({.method = "GET", .url = Url(target)}).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << target << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("within 300ms")) << target;
    EXPECT_LT(clock.Monotonic() - start, absl::Seconds(5)) << target;
  }
  over.Notify();
  server_.Stop();
}

TEST_F(HttpClientTest, ACancelledRequestEndsAndTheNextOneWorks) {
  absl::Notification asked;
  absl::Notification over;
  std::atomic<bool> answered = false;
  server_->Get("/silent", [&](const httplib::Request&, httplib::Response&) {
    asked.Notify();
    over.WaitForNotificationWithTimeout(absl::Minutes(1));
    answered = true;
  });
  server_->Get("/", [](const httplib::Request&, httplib::Response&) {});
  server_.Start();
  std::atomic<bool> cancelled = false;
  const auto client = MakeHttpClient({.timeout = absl::Hours(1), .cancelled = &cancelled});
  std::thread canceller([&] {
    asked.WaitForNotification();
    cancelled = true;
  });
  const absl::Status status = client->Send({.method = "GET", .url = Url("/silent")}).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(answered) << "it waited for its answer";
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(client->Send({.method = "GET", .url = Url("/")}).status()));
  cancelled = false;
  EXPECT_TRUE(client->Send({.method = "GET", .url = Url("/")}).ok());
  over.Notify();
  server_.Stop();
}

TEST_F(HttpClientTest, AnAnswerWithoutEndIsBrokenOff) {
  server_->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider(
        "text/plain", [chunk = std::string(1 << 20, 'x')](size_t, httplib::DataSink& sink) {
          return sink.write(chunk.data(), chunk.size());
        });
  });
  server_.Start();
  const absl::Status status = MakeHttpClient({})->Send({.method = "GET", .url = Url("/")}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 64 MiB"));
}

TEST_F(HttpClientTest, GoesThroughTheProxyOfTheEnvironment) {
  std::string asked;
  server_->Get(".*", [&](const httplib::Request& request, httplib::Response& response) {
    asked = request.target;
    response.set_content("of the proxy", "text/plain");
  });
  server_.Start();
  const ScopedVariable proxy("http_proxy", Url(""));
  const HttpRequest request{.method = "GET", .url = "http://mlflow.invalid:5000/x?y=z"};
  const auto answer = MakeHttpClient({})->Send(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "of the proxy");
  EXPECT_EQ(asked, "http://mlflow.invalid:5000/x?y=z");
  const ScopedVariable bad("http_proxy", "socks5://h:1");
  EXPECT_TRUE(absl::IsUnavailable(MakeHttpClient({})->Send(request).status()));
}

TEST(HttpClient, NobodyThereIsUnavailable) {
  const auto http = MakeHttpClient({.connect_timeout = absl::Seconds(2)});
  // Port 1 of loopback: nothing listens there.
  const absl::Status status = http->Send({.method = "GET", .url = "http://127.0.0.1:1/"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("http://127.0.0.1:1: "));
  for (const char* url : {"file:///etc", "http://", "http://h:0/", "http://h:x/", "mlflow:5000"}) {
    EXPECT_TRUE(absl::IsUnavailable(http->Send({.method = "GET", .url = url}).status())) << url;
  }
  EXPECT_EQ(http->Escape("a b/c&d~ü"), "a%20b%2Fc%26d~%C3%BC");
}

// A certificate for 127.0.0.1 that it signed itself, valid for an hour.
struct Certificate {
  X509* x509 = X509_new();
  EVP_PKEY* key = EVP_EC_gen("P-256");

  Certificate() {
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key);
    X509_NAME* const name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("hpo test"), -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_EXTENSION* const address =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(x509, address, -1);
    X509_EXTENSION_free(address);
    X509_sign(x509, key, EVP_sha256());
  }
  ~Certificate() {
    X509_free(x509);
    EVP_PKEY_free(key);
  }
};

TEST(HttpClient, HttpsBelievesOnlyWhomTheSystemOrTheUserBelieves) {
  const Certificate certificate;
  TestServer server(std::make_unique<httplib::SSLServer>(certificate.x509, certificate.key));
  server->Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("secure", "text/plain");
  });
  server.Start();
  const HttpRequest request{.method = "GET",
                            .url = absl::StrCat("https://", kHost, ":", server.port(), "/")};
  const absl::Status refused = MakeHttpClient({})->Send(request).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("certificate"));

  const std::string file = absl::StrCat(::testing::TempDir(), "/hpo_http_client_test.pem");
  std::FILE* const out = std::fopen(file.c_str(), "w");
  ASSERT_NE(out, nullptr);
  PEM_write_X509(out, certificate.x509);
  std::fclose(out);
  const ScopedVariable authorities("SSL_CERT_FILE", file);
  const auto answer = MakeHttpClient({})->Send(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "secure");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace hpo
