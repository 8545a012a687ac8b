#include "common/tls/relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/tls/dial.h"
#include "tests/common/tls/tls_pair.h"

namespace hpo::tls {
namespace {

// A pair of the relay between an echo server and `end`.
struct RelayedEcho {
  explicit RelayedEcho(Relay& relay, const EchoServer& server, int64_t bytes_per_second = 0) {
    absl::StatusOr<Dialed> dialed = Dial(server.Join(), absl::Seconds(10));
    HPO_CHECK(dialed.ok());
    std::array<int, 2> ends{};
    HPO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    end = ends[0];
    relay.Add({.tls = std::move(dialed->tls),
               .tls_socket = dialed->socket,
               .plain_socket = ends[1],
               .id = 7,
               .bytes_per_second = bytes_per_second});
  }
  ~RelayedEcho() { close(end); }
  int end;
};

// Sends `text` from a thread and reads as much.
std::string Echo(int end, const std::string& text) {
  std::thread sender([&] {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = send(end, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  });
  const std::string read = ReadAll(end, text.size());
  sender.join();
  return read;
}

TEST(Relay, CarriesBytesBothWays) {
  const EchoServer server;
  Relay relay;
  const RelayedEcho echo(relay, server);
  EXPECT_EQ(ReadAll(echo.end, 1), "!");
  EXPECT_EQ(Echo(echo.end, "hello"), "hello");
  std::string large(8 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 % 251);
  EXPECT_TRUE(Echo(echo.end, large) == large);
}

TEST(Relay, TheEndOfOneSideIsTheEndOfTheOther) {
  const EchoServer server;
  absl::Notification ended;
  Relay relay([&](uint64_t id) {
    EXPECT_EQ(id, 7U);
    ended.Notify();
  });
  {
    const RelayedEcho echo(relay, server);
    EXPECT_EQ(ReadAll(echo.end, 1), "!");
  }
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

TEST(Relay, ClosesWhatIsChosen) {
  const EchoServer server;
  Relay relay;
  const RelayedEcho echo(relay, server);
  EXPECT_EQ(ReadAll(echo.end, 1), "!");
  relay.CloseWhere([](uint64_t id) { return id == 8; });
  EXPECT_EQ(Echo(echo.end, "still there"), "still there");
  relay.CloseWhere([](uint64_t id) { return id == 7; });
  char byte = 0;
  EXPECT_EQ(recv(echo.end, &byte, 1, 0), 0);
}

TEST(Relay, HoldsBackWhatComesTooFast) {
  const EchoServer server;
  Relay relay;
  const RelayedEcho echo(relay, server, /*bytes_per_second=*/64 << 10);
  EXPECT_EQ(ReadAll(echo.end, 1), "!");
  const absl::Time begin = absl::Now();
  const std::string text(160 << 10, 'x');
  EXPECT_TRUE(Echo(echo.end, text) == text);
  EXPECT_GT(absl::Now() - begin, absl::Seconds(1.5));
}

}  // namespace
}  // namespace hpo::tls
