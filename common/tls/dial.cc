// Tested by tests/common/tls/forwarder_test.cc.
#include "common/tls/dial.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/tls/identity.h"

namespace hpo::tls {
namespace {

using AddressesPtr = std::unique_ptr<addrinfo, Freed<freeaddrinfo>>;
using StorePtr = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

// What the verification of the server's certificate has found.
struct Verdict {
  const JoinString* join;
  std::string why;  // empty: it is the right one
};

bool IsPinned(const X509* certificate, const JoinString& join) {
  const Digest digest = CertificateDigest(certificate);
  return CRYPTO_memcmp(digest.data(), join.certificate.data(), digest.size()) == 0;
}

// Whether `leaf` is signed by `anchor`, valid now, and of the join string's host; else why not.
std::string CheckSigned(X509* leaf, X509* anchor, STACK_OF(X509) * others, const JoinString& join) {
  const StorePtr store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), anchor);
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf, others) != 1) return TakeOpensslError();
  X509_VERIFY_PARAM* const param = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
  X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
  if (X509_VERIFY_PARAM_set1_ip_asc(param, join.host.c_str()) != 1) {
    ERR_clear_error();
    X509_VERIFY_PARAM_set1_host(param, join.host.c_str(), 0);
  }
  if (X509_verify_cert(context.get()) == 1) return "";
  const int error = X509_STORE_CTX_get_error(context.get());
  const bool is_time =
      error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
  if (is_time) return std::string(CheckDates(leaf, absl::Now()).message());
  return absl::StrCat("its certificate is not valid: ", X509_verify_cert_error_string(error));
}

// The pinned certificate itself needs no dates: whoever has its key is the server. One that it has
// signed does.
int VerifyServer(X509_STORE_CTX* presented, void* argument) {
  Verdict& verdict = *static_cast<Verdict*>(argument);
  X509* const leaf = X509_STORE_CTX_get0_cert(presented);
  if (IsPinned(leaf, *verdict.join)) return 1;
  STACK_OF(X509)* const others = X509_STORE_CTX_get0_untrusted(presented);
  for (int i = 0; i < sk_X509_num(others); ++i) {
    X509* const other = sk_X509_value(others, i);
    if (!IsPinned(other, *verdict.join)) continue;
    verdict.why = CheckSigned(leaf, other, others, *verdict.join);
    if (verdict.why.empty()) return 1;
    X509_STORE_CTX_set_error(presented, X509_V_ERR_CERT_UNTRUSTED);
    return 0;
  }
  verdict.why = absl::StrCat(
      "its certificate is ", FormatDigest(CertificateDigest(leaf)), ", and the join string names ",
      FormatDigest(verdict.join->certificate),
      ": it is another server, or the server has a new certificate, or somebody intercepts the "
      "connection. Nothing was proved to it. Take a new join string from the server itself");
  X509_STORE_CTX_set_error(presented, X509_V_ERR_CERT_UNTRUSTED);
  return 0;
}

class Deadline {
 public:
  explicit Deadline(absl::Duration timeout) : at_(absl::Now() + timeout) {}
  // False: it is over.
  bool WaitFor(int socket, short events) const {  // NOLINT(google-runtime-int): poll's type
    pollfd event{.fd = socket, .events = events, .revents = 0};
    for (;;) {
      const absl::Duration left = at_ - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      const int count = poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
      if (count > 0) return true;
      if (count < 0 && errno != EINTR) return false;
    }
  }

 private:
  absl::Time at_;
};

// A connected socket, or the negative errno.
int ConnectTo(const addrinfo& address, const Deadline& deadline) {
  const int descriptor = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -errno;
  int error = connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (deadline.WaitFor(descriptor, POLLOUT)) {
      getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) {
    close(descriptor);
    return -error;
  }
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A peer that vanished is noticed although nothing is sent.
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  return descriptor;
}

absl::StatusOr<int> Connect(const JoinString& join, const Deadline& deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(join.host.c_str(), absl::StrCat(join.port).c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(absl::StrCat("cannot find the host ", join.host, ": ",
                                               gai_strerror(failed),
                                               "; replace the name after @ by its IP address"));
  }
  const AddressesPtr addresses(found);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int descriptor = ConnectTo(*one, deadline);
    if (descriptor >= 0) return descriptor;
    error = -descriptor;
  }
  return absl::UnavailableError(
      absl::StrCat("cannot connect to hpo-server at ", join.Address(), ": ", std::strerror(error)));
}

absl::StatusOr<SslContextPtr> MakeContext(const JoinString& join, Verdict& verdict) {
  HPO_ASSIGN_OR_RETURN(const Identity identity, DeriveClientIdentity(join.secret));
  SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  const bool made = context != nullptr &&
                    SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    SSL_CTX_use_certificate(context.get(), identity.certificate.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(context.get(), identity.key.get()) == 1;
  if (!made) return absl::InternalError(absl::StrCat("OpenSSL: ", TakeOpensslError()));
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), VerifyServer, &verdict);
  return context;
}

absl::Status Refused(const JoinString& join, absl::string_view why) {
  return absl::PermissionDeniedError(
      absl::StrCat("hpo-server at ", join.Address(), " does not accept the join string: ", why));
}

// What the failure of a step of TLS means.
absl::Status TakeFailure(const JoinString& join, const Verdict& verdict, int error) {
  if (!verdict.why.empty()) {
    ERR_clear_error();
    return absl::UnauthenticatedError(absl::StrCat(
        "the server at ", join.Address(), " is not the one of the join string: ", verdict.why));
  }
  const unsigned long first = ERR_peek_error();  // NOLINT(google-runtime-int): OpenSSL's own type
  const int reason = ERR_GET_REASON(first);
  const std::string words = TakeOpensslError();
  if (error == SSL_ERROR_SYSCALL || first == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return absl::UnavailableError(absl::StrCat(
        "what answers at ", join.Address(),
        " ended the connection before TLS was set up: it has too many connections, or it is not "
        "hpo-server"));
  }
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return Refused(join, "its token was revoked; ask for a new one (hpo admin token create)");
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return Refused(join,
                     "its token has expired or was replaced; ask for a new one (hpo admin token "
                     "rotate)");
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return absl::UnauthenticatedError(absl::StrCat(
          "the database of hpo-server at ", join.Address(),
          " does not know the token of the join string; was the database replaced? Take a new join "
          "string from the server"));
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_INTERNAL_ERROR:
      return absl::UnavailableError(absl::StrCat("hpo-server at ", join.Address(),
                                                 " has too many connections of this client"));
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
      return absl::UnauthenticatedError(absl::StrCat(
          "what answers at ", join.Address(),
          " does not speak TLS: an hpo-server that listens without it is reached by --server"));
    default:
      return absl::UnauthenticatedError(
          absl::StrCat("the TLS handshake with ", join.Address(), " failed: ", words));
  }
}

// Repeats `step` of OpenSSL until it succeeds, fails or takes too long.
template <typename Step>
absl::Status Complete(SSL* tls, int socket, const JoinString& join, const Verdict& verdict,
                      const Deadline& deadline, Step step) {
  for (;;) {
    ERR_clear_error();
    const int result = step(tls);
    if (result > 0) return absl::OkStatus();
    const int error = SSL_get_error(tls, result);
    const bool reads = error == SSL_ERROR_WANT_READ;
    if (!reads && error != SSL_ERROR_WANT_WRITE) return TakeFailure(join, verdict, error);
    if (!deadline.WaitFor(socket, reads ? POLLIN : POLLOUT)) {
      return absl::UnavailableError(
          absl::StrCat("hpo-server at ", join.Address(), " does not answer"));
    }
  }
}

}  // namespace

absl::StatusOr<Dialed> Dial(const JoinString& join, absl::Duration timeout) {
  const Deadline deadline(timeout);
  Verdict verdict{.join = &join, .why = ""};
  HPO_ASSIGN_OR_RETURN(const SslContextPtr context, MakeContext(join, verdict));
  HPO_ASSIGN_OR_RETURN(const int socket, Connect(join, deadline));
  absl::Cleanup close_it = [socket] { close(socket); };
  SslPtr tls(SSL_new(context.get()));
  SSL_set_fd(tls.get(), socket);
  SSL_set_tlsext_host_name(tls.get(), join.host.c_str());
  HPO_RETURN_IF_ERROR(Complete(tls.get(), socket, join, verdict, deadline, SSL_connect));
  HPO_RETURN_IF_ERROR(Complete(tls.get(), socket, join, verdict, deadline, [](SSL* connected) {
    char first = 0;
    return SSL_peek(connected, &first, 1);
  }));
  std::move(close_it).Cancel();
  return Dialed{std::move(tls), socket};
}

bool SpeaksTls(const std::string& address, absl::Duration timeout) {
  JoinString target;
  if (!ParseAddress(address, target).ok()) return false;
  const Deadline deadline(timeout);
  const absl::StatusOr<int> socket = Connect(target, deadline);
  if (!socket.ok()) return false;
  const absl::Cleanup close_it = [&socket] { close(*socket); };
  const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr tls(SSL_new(context.get()));
  SSL_set_fd(tls.get(), *socket);
  const Verdict unverified{.join = &target, .why = ""};
  return Complete(tls.get(), *socket, target, unverified, deadline, SSL_connect).ok();
}

absl::Status NeedsJoinString(absl::string_view address) {
  return absl::UnauthenticatedError(absl::StrCat(
      "the server at ", address,
      " takes TLS and a token: expected a join string by --join, HPO_JOIN or HPO_JOIN_FILE, got "
      "none; on its machine they lie next to the database, such as "
      "~/.local/state/hpo/hpo.db.access/join-read"));
}

bool MayWorkLater(const absl::Status& status) { return absl::IsUnavailable(status); }

}  // namespace hpo::tls
