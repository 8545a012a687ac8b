#include "server/gate/connection_acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "hpo/v1/study.grpc.pb.h"

namespace hpo::server {
namespace {

using testing::HasSubstr;

constexpr int kPatienceMilliseconds = 10'000;

// A client's socket: made before descriptors are used up, connected when the test says so.
class Client {
 public:
  Client() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Client() { close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Connect(const ListenAddress& server) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server.port));
    inet_pton(AF_INET, server.host.c_str(), &address.sin_addr);
    ASSERT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
        << std::strerror(errno);
  }

  // What the server says until it closes the connection; empty where it says nothing in time.
  std::string ReadAll() {
    std::string text;
    for (;;) {
      pollfd event{.fd = descriptor_, .events = POLLIN, .revents = 0};
      char buffer[512];
      if (poll(&event, 1, kPatienceMilliseconds) != 1) return text;
      const ssize_t count = read(descriptor_, buffer, sizeof(buffer));
      if (count <= 0) return text;
      text.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  int descriptor_;
};

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void Start(int most_connections) {
    auto listening = ConnectionAcceptor::Listen({.host = "127.0.0.1", .port = 0}, most_connections);
    ASSERT_TRUE(listening.ok()) << listening.status();
    acceptor_ = *std::move(listening);
    acceptor_->Start([this](int, int connection) {
      absl::MutexLock lock(&mutex_);
      served_.push_back(connection);
    });
  }
  void TearDown() override {
    acceptor_.reset();
    for (const int connection : served_) close(connection);
  }

  bool AwaitServed(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return served_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached),
                                   absl::Milliseconds(kPatienceMilliseconds));
  }
  void CloseFirst() {
    absl::MutexLock lock(&mutex_);
    close(served_.front());
    served_.erase(served_.begin());
  }

  absl::Mutex mutex_;
  std::vector<int> served_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

TEST(ConnectionsFor, LeavesDescriptorsForTheDatabase) {
  EXPECT_EQ(ConnectionsFor(96), 32);
  EXPECT_EQ(ConnectionsFor(1024), 768);
  EXPECT_EQ(ConnectionsFor(65536), 10'000);
  EXPECT_EQ(ConnectionsFor(1), 1);
}

TEST(RaiseDescriptorLimit, GoesAsFarAsTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const rlim_t wanted = std::min<rlim_t>(before.rlim_max, kMostDescriptors);
  EXPECT_EQ(RaiseDescriptorLimit(), static_cast<int>(wanted));
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  EXPECT_EQ(after.rlim_cur, wanted);
  setrlimit(RLIMIT_NOFILE, &before);
}

// gRPC's own listener would be deaf from here on. Before any test that makes a call: threads that
// one leaves to gRPC open and close descriptors.
TEST_F(ConnectionAcceptorTest, AcceptsAgainAfterTheLastDescriptorWasUsed) {
  Start(1000);
  Client while_exhausted, afterwards;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{128, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<int> all;
  for (int next = open("/dev/null", O_RDONLY); next >= 0; next = open("/dev/null", O_RDONLY)) {
    all.push_back(next);
  }
  ASSERT_EQ(errno, EMFILE);
  while_exhausted.Connect(acceptor_->address());
  EXPECT_THAT(while_exhausted.ReadAll(), HasSubstr("no file descriptor left"));
  for (const int descriptor : all) close(descriptor);
  setrlimit(RLIMIT_NOFILE, &before);
  afterwards.Connect(acceptor_->address());
  EXPECT_TRUE(AwaitServed(1));
}

TEST_F(ConnectionAcceptorTest, ThoseBeyondTheBoundAreToldWhyAndLaterOnesServed) {
  Start(2);
  Client first, second, third, fourth;
  first.Connect(acceptor_->address());
  second.Connect(acceptor_->address());
  ASSERT_TRUE(AwaitServed(2));
  third.Connect(acceptor_->address());
  EXPECT_THAT(third.ReadAll(), HasSubstr("hpo-server serves 2 connections"));
  CloseFirst();
  fourth.Connect(acceptor_->address());
  EXPECT_TRUE(AwaitServed(2));
}

TEST_F(ConnectionAcceptorTest, ACallBeyondTheBoundEndsWithTheReason) {
  Start(1);
  Client first;
  first.Connect(acceptor_->address());
  ASSERT_TRUE(AwaitServed(1));
  const auto channel = grpc::CreateChannel(FormatListenAddress(acceptor_->address()),
                                           grpc::InsecureChannelCredentials());
  for (int round = 0; round < 2; ++round) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::ListStudiesResponse response;
    const grpc::Status status = v1::StudyService::NewStub(channel)->ListStudies(
        &context, v1::ListStudiesRequest(), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("hpo-server serves 1 connections"));
  }
}

TEST_F(ConnectionAcceptorTest, StoppingFreesTheAddress) {
  Start(10);
  const ListenAddress address = acceptor_->address();
  EXPECT_TRUE(absl::IsUnavailable(ConnectionAcceptor::Listen(address, 1).status()));
  acceptor_->Stop();
  acceptor_->Stop();
  EXPECT_TRUE(ConnectionAcceptor::Listen(address, 1).ok());
}

TEST(UnixListener, IsItsOwnersAloneAndLeavesNoFile) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/connection_acceptor_test_", getpid(), ".sock");
  unlink(path.c_str());
  for (int round = 0; round < 2; ++round) {
    const auto acceptor = ConnectionAcceptor::Listen({.unix_path = path}, 10);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_TRUE(absl::IsUnavailable(ConnectionAcceptor::Listen({.unix_path = path}, 10).status()));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace hpo::server
