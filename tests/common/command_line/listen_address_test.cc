#include "common/command_line/listen_address.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

using testing::HasSubstr;

TEST(ListenAddress, AddressesAndUnixSocketsAreTaken) {
  const struct {
    const char* text;
    ListenAddress address;
    const char* formatted;
  } cases[] = {
      {"127.0.0.1:50051", {.host = "127.0.0.1", .port = 50051}, "127.0.0.1:50051"},
      {"127.8.9.1:0", {.host = "127.8.9.1", .port = 0}, "127.8.9.1:0"},
      {"localhost:80", {.host = "localhost", .port = 80}, "localhost:80"},
      {"0.0.0.0:50051", {.host = "0.0.0.0", .port = 50051}, "0.0.0.0:50051"},
      {"[::]:1", {.host = "::", .port = 1}, "[::]:1"},
      {"[::1]:5", {.host = "::1", .port = 5}, "[::1]:5"},
      {"unix:/run/hpo.sock", {.unix_path = "/run/hpo.sock"}, "unix:/run/hpo.sock"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.text);
    const absl::StatusOr<ListenAddress> address = ParseListenAddress(test.text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(*address, test.address);
    EXPECT_EQ(FormatListenAddress(*address), test.formatted);
  }
}

TEST(ListenAddress, WhatOtherMachinesReachNeedsTls) {
  const struct {
    const char* text;
    bool needs;
    bool needs_where_loopback_does;
  } cases[] = {{"127.0.0.1:1", false, true}, {"localhost:1", false, true},
               {"[::1]:1", false, true},     {"unix:/run/hpo.sock", false, false},
               {"0.0.0.0:1", true, true},    {"192.168.1.4:1", true, true},
               {"[::]:1", true, true},       {"[fe80::1]:1", true, true}};
  for (const auto& test : cases) {
    SCOPED_TRACE(test.text);
    const absl::StatusOr<ListenAddress> address = ParseListenAddress(test.text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(NeedsTls(*address, false), test.needs);
    EXPECT_EQ(NeedsTls(*address, true), test.needs_where_loopback_does);
  }
}

TEST(ListenAddress, ANameOfAHostIsNoAddressToListenOn) {
  const absl::Status status = ParseListenAddress("example.org:1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--advertise"));
}

TEST(ListenAddress, MalformedOnesAreNamed) {
  const std::string long_path = "unix:/" + std::string(200, 'x');
  for (const std::string& text :
       {std::string("50051"), std::string("127.0.0.1"), std::string("127.0.0.1:70000"),
        std::string("127.0.0.1:-1"), std::string("127.0.0.1:x"), std::string("unix:"),
        std::string("unix:relative"), long_path, std::string()}) {
    const absl::Status status = ParseListenAddress(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--listen: expected"));
  }
}

// A listening socket of this test's own.
class Listener {
 public:
  Listener(int family, const sockaddr* address, socklen_t size)
      : descriptor_(socket(family, SOCK_STREAM, 0)) {
    EXPECT_EQ(bind(descriptor_, address, size), 0) << std::strerror(errno);
    EXPECT_EQ(listen(descriptor_, 1), 0);
  }
  ~Listener() { close(descriptor_); }

  int Port() const {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

 private:
  int descriptor_;
};

TEST(ListenAddress, ABoundPortIsInUse) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Listener listener(AF_INET, reinterpret_cast<const sockaddr*>(&any), sizeof(any));
  const ListenAddress address{.host = "127.0.0.1", .port = listener.Port()};
  const absl::Status status = CheckFree(address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), FormatListenAddress(address) + " is in use");
  EXPECT_TRUE(CheckFree({.host = "127.0.0.1", .port = 0}).ok());
}

TEST(ListenAddress, AnAnsweredUnixSocketIsInUseAndALeftOverOneIsNot) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/listen_address_test_", getpid(), ".sock");
  unlink(path.c_str());
  EXPECT_TRUE(CheckFree({.unix_path = path}).ok());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof(name.sun_path) - 1);
  {
    const Listener listener(AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
    EXPECT_THAT(std::string(CheckFree({.unix_path = path}).message()), HasSubstr("is in use"));
  }
  EXPECT_TRUE(CheckFree({.unix_path = path}).ok());
  unlink(path.c_str());
}

TEST(ListenAddress, AFileThatIsNoSocketIsNotDeleted) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/listen_address_test_", getpid(), ".file");
  std::ofstream(path) << "kept";
  ListenAddress address{.unix_path = path};
  EXPECT_EQ(CheckFree(address).code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status status = BindAndListen(address).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no socket"));
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "kept");
  unlink(path.c_str());
}

}  // namespace
}  // namespace hpo
