// A server of TLS for tests: accepts one connection after the other on a loopback port.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/tls/identity.h"
#include "common/tls/join_string.h"
#include "common/tls/openssl_types.h"

namespace hpo::tls {

class EchoServer {
 public:
  // `verify` decides about the client's certificate: 0, or an error of X509_V_ERR_*.
  explicit EchoServer(std::function<int(const X509*)> verify = [](const X509*) { return 0; })
      : verify_(std::move(verify)) {
    absl::StatusOr<Identity> made = MakeServerIdentity("localhost", absl::Now());
    HPO_CHECK(made.ok());
    identity_ = *std::move(made);
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate(context_.get(), identity_.certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), identity_.key.get());
    SSL_CTX_set_num_tickets(context_.get(), 0);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_cert_verify_callback(context_.get(), Verify, this);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HPO_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    HPO_CHECK(listen(listener_, 16) == 0);
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~EchoServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  EchoServer(const EchoServer&) = delete;

  JoinString Join() const {
    return {.certificate = CertificateDigest(identity_.certificate.get()),
            .secret = RandomSecret(),
            .host = "127.0.0.1",
            .port = port_};
  }
  int num_clients() const { return num_clients_; }

 private:
  static int Verify(X509_STORE_CTX* presented, void* server) {
    auto& self = *static_cast<EchoServer*>(server);
    ++self.num_clients_;
    const int error = self.verify_(X509_STORE_CTX_get0_cert(presented));
    X509_STORE_CTX_set_error(presented, error);
    return error == 0 ? 1 : 0;
  }

  // A greeting, then whatever comes.
  void Run() {
    BlockBrokenPipeSignal();
    for (;;) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const SslPtr tls(SSL_new(context_.get()));
      SSL_set_fd(tls.get(), connection);
      if (SSL_accept(tls.get()) == 1) {
        SSL_write(tls.get(), "!", 1);
        char buffer[4096];
        for (int size = 0; (size = SSL_read(tls.get(), buffer, sizeof(buffer))) > 0;) {
          SSL_write(tls.get(), buffer, size);
        }
      }
      close(connection);
    }
  }

  const std::function<int(const X509*)> verify_;
  Identity identity_;
  SslContextPtr context_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> num_clients_ = 0;
  std::thread thread_;
};

// Reads `size` bytes of a non-blocking or blocking socket, or what comes within ten seconds.
inline std::string ReadAll(int socket, size_t size) {
  std::string text;
  char buffer[65536];
  while (text.size() < size) {
    pollfd event{.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&event, 1, 10'000) != 1) break;
    const ssize_t count = recv(socket, buffer, std::min(sizeof(buffer), size - text.size()), 0);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

}  // namespace hpo::tls
