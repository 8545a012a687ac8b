#include "common/tls/forwarder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/common/tls/tls_pair.h"

namespace hpo::tls {
namespace {

using testing::HasSubstr;

// A connection to a forwarder's address.
int ConnectTo(absl::string_view address) {
  address.remove_prefix(strlen("unix-abstract:"));
  sockaddr_un target{};
  target.sun_family = AF_UNIX;
  std::memcpy(target.sun_path + 1, address.data(), address.size());
  const int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  if (connect(end, reinterpret_cast<sockaddr*>(&target), size) == 0) return end;
  close(end);
  return -1;
}

std::unique_ptr<Forwarder> ForwarderOf(const JoinString& join) {
  absl::StatusOr<std::unique_ptr<Forwarder>> forwarder =
      Forwarder::StartForThisProcess({.join = [join] { return join; }, .on_change = nullptr});
  HPO_CHECK(forwarder.ok());
  return *std::move(forwarder);
}

TEST(Forwarder, LeadsToTheServer) {
  const EchoServer server;
  const auto forwarder = ForwarderOf(server.Join());
  EXPECT_TRUE(forwarder->Check().ok());
  const int end = ConnectTo(forwarder->address());
  ASSERT_GE(end, 0);
  EXPECT_EQ(ReadAll(end, 1), "!");
  ASSERT_EQ(send(end, "abc", 3, 0), 3);
  EXPECT_EQ(ReadAll(end, 3), "abc");
  close(end);
}

TEST(Forwarder, OtherProcessesGetNothing) {
  const EchoServer server;
  const auto forwarder = ForwarderOf(server.Join());
  const pid_t child = fork();
  if (child == 0) {
    const int end = ConnectTo(forwarder->address());
    char byte = 0;
    _exit(end >= 0 && recv(end, &byte, 1, 0) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(server.num_clients(), 0);
}

TEST(Forwarder, ProvesNothingToAServerWithAnotherCertificate) {
  const EchoServer server;
  JoinString join = server.Join();
  join.certificate[0] ^= 1;
  const absl::Status status = ForwarderOf(join)->Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Nothing was proved to it"));
  EXPECT_EQ(server.num_clients(), 0);
}

TEST(Forwarder, SaysWhyTheServerRefuses) {
  const struct {
    int error;
    absl::StatusCode code;
    const char* words;
  } cases[] = {{X509_V_ERR_CERT_REVOKED, absl::StatusCode::kPermissionDenied, "revoked"},
               {X509_V_ERR_CERT_HAS_EXPIRED, absl::StatusCode::kPermissionDenied, "expired"},
               {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, absl::StatusCode::kUnauthenticated,
                "does not know the token"}};
  for (const auto& test : cases) {
    const EchoServer server([&test](const X509*) { return test.error; });
    const absl::Status status = ForwarderOf(server.Join())->Check();
    EXPECT_EQ(status.code(), test.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.words));
    EXPECT_FALSE(MayWorkLater(status));
  }
}

TEST(SpeaksTls, TellsServersWithTlsFromOthers) {
  const absl::Duration timeout = absl::Milliseconds(500);
  std::string address;
  {
    const EchoServer server;
    address = server.Join().Address();
    EXPECT_TRUE(SpeaksTls(address, absl::Seconds(10)));
    EXPECT_EQ(server.num_clients(), 0);  // it has proved nothing
  }
  EXPECT_FALSE(SpeaksTls(address, timeout)) << "nobody is there";
  EXPECT_FALSE(SpeaksTls("unix:/run/hpo.sock", timeout));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(any);
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(listen(silent, 1), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&any), &size), 0);
  EXPECT_FALSE(SpeaksTls(absl::StrCat("127.0.0.1:", ntohs(any.sin_port)), timeout));
  close(silent);
}

TEST(Forwarder, AServerThatIsAwayMayComeBack) {
  JoinString join;
  {
    const EchoServer server;
    join = server.Join();
  }
  const absl::Status status = ForwarderOf(join)->Check();
  EXPECT_TRUE(MayWorkLater(status)) << status;
}

TEST(Forwarder, WaitsForItsServerWhereAnotherOneAnswersForAWhile) {
  const EchoServer server;
  const EchoServer wrong;
  std::atomic<int> port = server.Join().port;
  const auto forwarder = Forwarder::StartForThisProcess({.join =
                                                             [&] {
                                                               JoinString join = server.Join();
                                                               join.port = port;
                                                               return join;
                                                             },
                                                         .on_change = nullptr})
                             .value();
  const auto connect = [&forwarder](const std::string& expected) {
    const int end = ConnectTo(forwarder->address());
    EXPECT_EQ(ReadAll(end, 1), expected);
    close(end);
  };
  port = wrong.Join().port;
  connect("");
  EXPECT_EQ(forwarder->status().code(), absl::StatusCode::kUnauthenticated);
  port = server.Join().port;
  connect("!");
  EXPECT_TRUE(forwarder->status().ok()) << forwarder->status();
  port = wrong.Join().port;
  connect("");
  EXPECT_TRUE(MayWorkLater(forwarder->status())) << forwarder->status();
  EXPECT_THAT(std::string(forwarder->status().message()), HasSubstr("Nothing was proved to it"));
}

}  // namespace
}  // namespace hpo::tls
