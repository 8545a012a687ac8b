// Tested by tests/server/http/page_server_test.cc.
#include "server/http/http_server.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tls/openssl_types.h"
#include "server/http/http_error.h"
#include "server/http/request_target.h"

namespace hpo::server {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = net::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr int kLowPriority = 5;  // of nice(2): viewers wait, workers do not
constexpr std::chrono::seconds kTimeToLeave{2};
constexpr size_t kMostDrained = size_t{8} << 20;  // of a body that nobody wants
constexpr std::chrono::milliseconds kRestAfterFailure{100};
constexpr char kServer[] = "hpo-server";

// What every answer says, whatever it is.
constexpr std::pair<const char*, const char*> kEachAnswer[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
     "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"}};

std::chrono::nanoseconds Chrono(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

// A connection as the loop sees it. On the loop's thread.
class Link {
 public:
  virtual ~Link() = default;
  virtual void Close() = 0;
  // Waits for a request, or for a handshake.
  bool is_idle = true;
  std::string host;
};

// Who is connected, oldest first.
class Links {
 public:
  explicit Links(const HttpServerOptions& options) : options_(options) {}

  // False: there is no room.
  bool MakeRoom(const std::string& host) {
    const bool is_full = links_.size() >= options_.most_connections;
    const bool host_is_full = CountOf(host) >= options_.most_of_one_host;
    if (!is_full && !host_is_full) return true;
    const auto idle = std::find_if(order_.begin(), order_.end(), [&](const auto& one) {
      return one.second->is_idle && (!host_is_full || one.second->host == host);
    });
    if (idle == order_.end()) return false;
    Link* const link = idle->second;
    Remove(link);
    link->Close();
    return true;
  }
  void Add(Link* link) {
    links_[link] = next_;
    order_[next_++] = link;
    ++by_host_[link->host];
  }
  void Remove(Link* link) {
    const auto found = links_.find(link);
    if (found == links_.end()) return;
    order_.erase(found->second);
    links_.erase(found);
    if (--by_host_[link->host] == 0) by_host_.erase(link->host);
  }
  // The connection waits for its next request from now on.
  void Touch(Link* link) {
    const auto found = links_.find(link);
    if (found == links_.end()) return;
    order_.erase(found->second);
    found->second = next_;
    order_[next_++] = link;
  }
  std::vector<Link*> All() const {
    std::vector<Link*> all;
    for (const auto& [link, place] : links_) all.push_back(link);
    return all;
  }

 private:
  size_t CountOf(const std::string& host) const {
    const auto found = by_host_.find(host);
    return found == by_host_.end() ? 0 : found->second;
  }

  const HttpServerOptions& options_;
  std::map<Link*, uint64_t> links_;
  std::map<uint64_t, Link*> order_;
  std::map<std::string, size_t> by_host_;
  uint64_t next_ = 1;
};

// What connections share.
struct Shared {
  const HttpServerOptions options;
  HttpSite& site;
  Links links{options};
  int port = 0;
};

std::string AddressOf(const Tcp::socket& socket) {
  ErrorCode error;
  const Tcp::endpoint remote = socket.remote_endpoint(error);
  if (error) return "gone";
  const std::string host = remote.address().to_string();
  const bool is_v6 = remote.address().is_v6();
  return absl::StrCat(is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", remote.port());
}

RequestHead HeadOf(const http::request<http::string_body>& request, const std::string& from,
                   bool has_tls) {
  RequestHead head;
  head.method = std::string(request.method_string());
  head.from = from;
  head.has_tls = has_tls;
  for (const auto& field : request) {
    head.headers.try_emplace(absl::AsciiStrToLower(std::string(field.name_string())),
                             std::string(field.value()));
  }
  return head;
}

// Why a request cannot be read; nullopt: the client has left, and there is nobody to tell.
std::optional<HttpAnswer> AnswerTo(const ErrorCode& error, const HttpServerOptions& options) {
  if (error == http::error::header_limit) {
    return ErrorResponse(431, "RESOURCE_EXHAUSTED",
                         absl::StrCat("expected at most ", options.most_header_bytes,
                                      " bytes of header fields, got more"));
  }
  if (error == http::error::body_limit) {
    return ErrorResponse(413, "RESOURCE_EXHAUSTED",
                         absl::StrCat("expected a body of at most ", options.most_body_bytes,
                                      " bytes, got a longer one"));
  }
  const bool is_malformed =
      error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message;
  if (!is_malformed) return std::nullopt;
  return ErrorResponse(400, "INVALID_ARGUMENT",
                       absl::StrCat("expected a request of HTTP/1.1, got: ", error.message()));
}

template <typename Message>
void Fill(const HttpAnswer& response, bool keeps_alive, Message& message) {
  message.version(11);
  message.result(static_cast<unsigned>(response.status));
  message.set(http::field::server, kServer);
  for (const auto& [name, value] : kEachAnswer) message.set(name, value);
  if (!response.content_type.empty()) {
    message.set(http::field::content_type, response.content_type);
  }
  for (const auto& [name, value] : response.headers) message.insert(name, value);
  message.keep_alive(keeps_alive);
}

// Pieces of an answer that wait for the one before them.
class Pieces {
 public:
  using Taken = std::function<void(bool)>;

  bool empty() const { return pieces_.empty(); }
  // Without `taken`: the end.
  void Add(std::string piece, Taken taken) {
    pieces_.emplace_back(std::move(piece), std::move(taken));
  }
  std::pair<std::string, Taken> TakeFirst() {
    std::pair<std::string, Taken> first = std::move(pieces_.front());
    pieces_.pop_front();
    return first;
  }
  void Clear() { pieces_.clear(); }
  // Nothing is sent any more.
  void Fail() {
    for (auto& [piece, taken] : std::exchange(pieces_, {})) {
      if (taken) taken(false);
    }
  }

 private:
  std::deque<std::pair<std::string, Taken>> pieces_;
};

// What answers a request whose head was read, without its body; nullopt: it is to be served.
template <typename Request>
std::optional<HttpAnswer> ScreenRequest(const Request& request, HttpSite& site, RequestHead& head) {
  const auto target = request.target();
  if (ReadTarget({target.data(), target.size()}, head)) return site.Screen(head);
  return ErrorResponse(400, "INVALID_ARGUMENT",
                       "expected a path such as /api/StudyService/ListStudies");
}

// One connection: reads a request, has it answered, reads the next one. On the loop's thread, but
// for Reply's methods, which go there.
template <typename Stream>
class Connection final : public Link,
                         public Reply,
                         public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <typename... Rest>
  Connection(Shared& shared, std::string from, Tcp::socket socket, Rest&... rest)
      : shared_(shared), from_(std::move(from)), stream_(std::move(socket), rest...) {
    host = from_.substr(0, from_.rfind(':'));
  }

  void Run() {
    shared_.links.Add(this);
    if constexpr (kHasTls) {
      Lowest().expires_after(Chrono(shared_.options.handshake_timeout));
      stream_.async_handshake(net::ssl::stream_base::server,
                              [self = Self()](const ErrorCode& error) {
                                if (error) return self->Close();
                                self->ReadHeader();
                              });
    } else {
      ReadHeader();
    }
  }

  void Close() override {
    if (is_closed_) return;
    is_closed_ = true;
    shared_.links.Remove(this);
    Lowest().close();
    if (auto taken = std::exchange(taken_, nullptr)) taken(false);
  }

  void Send(HttpAnswer response) override {
    Post([response = std::move(response)](Connection& me) mutable {
      me.WriteWhole(std::move(response));
    });
  }

  void Begin(HttpAnswer head) override {
    Post([head = std::move(head)](Connection& me) mutable { me.WriteHead(std::move(head)); });
  }

  void Write(std::string piece, std::function<void(bool)> taken) override {
    Post([piece = std::move(piece), taken = std::move(taken)](Connection& me) mutable {
      me.pieces_.Add(std::move(piece), std::move(taken));
      me.WriteNextPiece();
    });
  }

  void End() override {
    Post([](Connection& me) {
      me.pieces_.Add("", nullptr);
      me.WriteNextPiece();
    });
  }

  void Abort() override {
    Post([](Connection& me) { me.Close(); });
  }

 private:
  static constexpr bool kHasTls = !std::is_same_v<Stream, beast::tcp_stream>;

  std::shared_ptr<Connection> Self() { return this->shared_from_this(); }
  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }

  template <typename Work>
  void Post(Work work) {
    net::post(stream_.get_executor(),
              [self = Self(), work = std::move(work)]() mutable { work(*self); });
  }

  void ReadHeader() {
    is_idle = true;
    shared_.links.Touch(this);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.options.most_header_bytes));
    parser_->body_limit(shared_.options.most_body_bytes);
    Lowest().expires_after(Chrono(shared_.options.header_timeout));
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = Self()](const ErrorCode& error, size_t) { self->HeaderRead(error); });
  }

  void HeaderRead(const ErrorCode& error) {
    is_idle = false;
    if (error) return Refuse(error);
    head_ = HeadOf(parser_->get(), from_, kHasTls);
    head_.port = shared_.port;
    keeps_alive_ = parser_->keep_alive();
    has_body_ = !parser_->is_done();
    std::optional<HttpAnswer> answer = ScreenRequest(parser_->get(), shared_.site, head_);
    if (answer) {
      keeps_alive_ = keeps_alive_ && !has_body_;
      return WriteWhole(*std::move(answer));
    }
    if (!has_body_) return Serve();
    if (absl::EqualsIgnoreCase(head_.Header("expect"), "100-continue")) return Encourage();
    ReadBody();
  }

  // curl waits for this line before it sends a long body.
  void Encourage() {
    static constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
    net::async_write(stream_, net::buffer(kContinue, sizeof(kContinue) - 1),
                     [self = Self()](const ErrorCode& error, size_t) {
                       if (error) return self->Close();
                       self->ReadBody();
                     });
  }

  void ReadBody() {
    Lowest().expires_after(Chrono(shared_.options.body_timeout));
    http::async_read(stream_, buffer_, *parser_, [self = Self()](const ErrorCode& error, size_t) {
      if (error) return self->Refuse(error);
      self->has_body_ = false;
      self->Serve();
    });
  }

  void Serve() {
    Lowest().expires_never();
    shared_.site.Serve(head_, std::move(parser_->get().body()), Self());
  }

  void Refuse(const ErrorCode& error) {
    std::optional<HttpAnswer> answer = AnswerTo(error, shared_.options);
    if (!answer) return Close();
    keeps_alive_ = false;
    has_body_ = true;
    WriteWhole(*std::move(answer));
  }

  void WriteWhole(HttpAnswer response) {
    if (is_closed_) return;
    whole_.emplace();
    Fill(response, keeps_alive_, *whole_);
    whole_->body() = std::move(response.body);
    if (response.status != 304) whole_->prepare_payload();
    whole_serializer_.emplace(*whole_);
    Lowest().expires_after(Chrono(shared_.options.write_timeout));
    const auto written = [self = Self()](const ErrorCode& error, size_t) {
      if (error) return self->Close();
      self->Answered();
    };
    if (head_.method == "HEAD") {
      http::async_write_header(stream_, *whole_serializer_, written);
    } else {
      http::async_write(stream_, *whole_serializer_, written);
    }
  }

  void WriteHead(HttpAnswer head) {
    if (is_closed_) return;
    pieces_.Clear();
    chunked_.emplace();
    Fill(head, keeps_alive_, *chunked_);
    chunked_->chunked(true);
    serializer_.emplace(*chunked_);
    is_writing_ = true;
    Lowest().expires_after(Chrono(shared_.options.write_timeout));
    http::async_write_header(stream_, *serializer_,
                             [self = Self()](const ErrorCode& error, size_t) {
                               if (error) return self->Close();
                               self->PieceWritten(nullptr);
                             });
  }

  void WriteNextPiece() {
    if (is_closed_) return pieces_.Fail();
    if (is_writing_ || pieces_.empty()) return;
    is_writing_ = true;
    std::tie(piece_, taken_) = pieces_.TakeFirst();
    const bool is_last = taken_ == nullptr;
    Lowest().expires_after(Chrono(shared_.options.write_timeout));
    const auto written = [self = Self(), is_last](const ErrorCode& error, size_t) {
      if (error) return self->Close();
      self->is_writing_ = !is_last && self->is_writing_;
      if (is_last) return self->Answered();
      self->PieceWritten(std::exchange(self->taken_, nullptr));
    };
    if (is_last) {
      net::async_write(stream_, http::make_chunk_last(), written);
    } else {
      net::async_write(stream_, http::make_chunk(net::buffer(piece_)), written);
    }
  }

  void PieceWritten(const std::function<void(bool)>& taken) {
    is_writing_ = false;
    Lowest().expires_never();
    if (taken) taken(true);
    WriteNextPiece();
  }

  void Answered() {
    if (keeps_alive_) return ReadHeader();
    Leave();
  }

  // What the client still sends is read for a moment: a connection that is closed with bytes unread
  // is reset, and the answer may be lost.
  void Leave() {
    Lowest().expires_after(kTimeToLeave);
    if constexpr (kHasTls) {
      if (!has_body_) {
        stream_.async_shutdown([self = Self()](const ErrorCode&) { self->Close(); });
        return;
      }
    }
    ErrorCode ignored;
    Lowest().socket().shutdown(Tcp::socket::shutdown_send, ignored);
    Drain();
  }

  void Drain() {
    drained_.resize(size_t{16} << 10);
    Lowest().async_read_some(net::buffer(drained_),
                             [self = Self()](const ErrorCode& error, size_t size) {
                               self->num_drained_ += size;
                               if (error || self->num_drained_ > kMostDrained) return self->Close();
                               self->Drain();
                             });
  }

  Shared& shared_;
  const std::string from_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  RequestHead head_;
  bool keeps_alive_ = true;
  bool has_body_ = false;  // that was not read
  bool is_closed_ = false;
  std::optional<http::response<http::string_body>> whole_;
  std::optional<http::response_serializer<http::string_body>> whole_serializer_;
  std::optional<http::response<http::empty_body>> chunked_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  bool is_writing_ = false;
  Pieces pieces_;
  std::string piece_;
  std::function<void(bool)> taken_;
  std::string drained_;
  size_t num_drained_ = 0;
};

absl::StatusOr<std::optional<net::ssl::context>> MakeTls(const tls::Identity* identity) {
  if (identity == nullptr) return std::nullopt;
  net::ssl::context context(net::ssl::context::tls_server);
  SSL_CTX* const raw = context.native_handle();
  bool made = SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) == 1 &&
              SSL_CTX_use_certificate(raw, identity->certificate.get()) == 1 &&
              SSL_CTX_use_PrivateKey(raw, identity->key.get()) == 1;
  for (const tls::CertificatePtr& one : identity->chain) {
    made = made && SSL_CTX_add1_chain_cert(raw, one.get()) == 1;
  }
  if (!made) return absl::InternalError(absl::StrCat("TLS: ", tls::TakeOpensslError()));
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

// Accepts connections, and runs what they wait for.
struct HttpServer::Loop {
  Loop(const HttpServerOptions& options, HttpSite& site, std::optional<net::ssl::context> with)
      : shared{options, site}, tls(std::move(with)) {}

  void Accept() {
    acceptor.async_accept([this](const ErrorCode& error, Tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (error) {
        // No descriptor is left, most likely.
        rest.expires_after(kRestAfterFailure);
        rest.async_wait([this](const ErrorCode& ended) {
          if (!ended) Accept();
        });
        return;
      }
      Take(std::move(socket));
      Accept();
    });
  }

  void Take(Tcp::socket socket) {
    const std::string from = AddressOf(socket);
    if (!shared.links.MakeRoom(from.substr(0, from.rfind(':')))) return;  // closes it
    ErrorCode ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    socket.set_option(net::socket_base::keep_alive(true), ignored);
    if (tls) {
      using Stream = beast::ssl_stream<beast::tcp_stream>;
      std::make_shared<Connection<Stream>>(shared, from, std::move(socket), *tls)->Run();
    } else {
      std::make_shared<Connection<beast::tcp_stream>>(shared, from, std::move(socket))->Run();
    }
  }

  void Run() {
    tls::BlockBrokenPipeSignal();
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kLowPriority);
    Accept();
    context.run();
  }

  void Stop() {
    net::post(context, [this] {
      ErrorCode ignored;
      acceptor.close(ignored);
      rest.cancel();
      for (Link* const link : shared.links.All()) link->Close();
    });
  }

  Shared shared;
  std::optional<net::ssl::context> tls;
  net::io_context context{1};
  Tcp::acceptor acceptor{context};
  net::steady_timer rest{context};
};

HttpServer::HttpServer(ListenAddress address, std::unique_ptr<Loop> loop)
    : address_(std::move(address)),
      loop_(std::move(loop)),
      thread_([loop = loop_.get()] { loop->Run(); }) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              HttpSite& site) {
  HPO_ASSIGN_OR_RETURN(std::optional<net::ssl::context> tls, MakeTls(options.identity));
  auto loop = std::make_unique<Loop>(options, site, std::move(tls));
  ListenAddress bound = options.listen;
  HPO_ASSIGN_OR_RETURN(const int listener, BindAndListen(bound));
  loop->shared.port = bound.port;
  const bool is_v6 = absl::StrContains(bound.host, ':');
  ErrorCode error;
  loop->acceptor.assign(is_v6 ? Tcp::v6() : Tcp::v4(), listener, error);
  if (error) {
    close(listener);
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", FormatListenAddress(bound), ": ", error.message()));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(bound, std::move(loop)));
}

void HttpServer::Stop() {
  if (!thread_.joinable()) return;
  loop_->Stop();
  thread_.join();
}

}  // namespace hpo::server
