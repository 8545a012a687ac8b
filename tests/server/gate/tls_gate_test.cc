#include "server/gate/tls_gate.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/tls/server_route.h"
#include "hpo/v1/admin.grpc.pb.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using testing::HasSubstr;

// A coordinator that speaks TLS on a loopback address.
class TlsGateTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    CoordinatorFixture::SetUp();
    coordinator_.reset();
    CoordinatorOptions options = Options();
    options.security.tls_on_loopback = true;
    auto started = Coordinator::Start(options, clock_);
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    folder_of_access_ = options.database + ".access";
  }

  tls::JoinString JoinOf(const std::string& name) const {
    std::ifstream file(absl::StrCat(folder_of_access_, "/join-", name));
    std::string line;
    std::getline(file, line);
    return tls::ParseJoinString(line).value();
  }

  // A client of the join string; its route outlives the channel.
  struct Client {
    explicit Client(const tls::JoinString& join) {
      forwarder = tls::Forwarder::StartForThisProcess(
                      {.join = [join] { return join; }, .on_change = nullptr})
                      .value();
      channel = grpc::CreateChannel(forwarder->address(), grpc::InsecureChannelCredentials());
    }
    grpc::Status GetServer() const {
      Call call;
      v1::GetServerResponse response;
      return v1::AdminService::NewStub(channel)->GetServer(&call, v1::GetServerRequest(),
                                                           &response);
    }
    grpc::Status CreateStudy(const std::string& yaml) const {
      Call call;
      v1::CreateStudyRequest request;
      request.set_yaml(yaml);
      v1::CreateStudyResponse response;
      return v1::StudyService::NewStub(channel)->CreateStudy(&call, request, &response);
    }
    std::unique_ptr<tls::Forwarder> forwarder;
    std::shared_ptr<grpc::Channel> channel;
  };

  // A plain connection to the server's port, from an address of this machine: 127.0.0.1, or another
  // one of 127.0.0.0/8.
  int Connect(uint32_t from = INADDR_LOOPBACK) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(JoinOf("read").port));
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(bind(connection, reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return connection;
  }

  std::string Audit() const {
    std::ifstream file(folder_of_access_ + "/audit.jsonl");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Waits for a line that the gate writes after it has answered; the test's time-out ends it where
  // there is none.
  void AwaitAudit(const std::string& text) const {
    while (Audit().find(text) == std::string::npos) std::this_thread::yield();
  }

  std::string folder_of_access_;
};

constexpr char kWithCommand[] = R"(
name: commanded
objective: {metric: loss, direction: minimize}
trainer: {task: custom, command: [touch, /tmp/x]}
parameters: {lr: {float: [0.1, 1.0]}}
)";

TEST_F(TlsGateTest, ATokenLeadsToTheServices) {
  const Client reader(JoinOf("read"));
  const grpc::Status status = reader.GetServer();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(TlsGateTest, ARoleIsHeldTo) {
  const grpc::Status status = Client(JoinOf("work")).GetServer();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("GetServer needs read"));
}

// By the metadata `hpo-peer` the page's server names whom it has admitted. From outside it changes
// nothing, not even with the name of an administrator who has the page open.
TEST_F(TlsGateTest, NobodyTakesAnothersNameByMetadata) {
  const std::string admin = coordinator_->access().EnterPage(
      {.token = 0, .name = "root", .role = Role::kAdmin, .from = "127.0.0.1"});
  const Client reader(JoinOf("read"));
  for (const std::string& name : {admin, std::string("ipv4:127.0.0.1:1"), std::string("local"),
                                  std::string("unix-abstract:hpo-page-0-1"), std::string()}) {
    SCOPED_TRACE(name);
    Call call;
    call.AddMetadata(kPeerKey, name);
    v1::CreateStudyRequest request;
    request.set_yaml(kPlainStudy);
    v1::CreateStudyResponse response;
    const grpc::Status status =
        v1::StudyService::NewStub(reader.channel)->CreateStudy(&call, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("CreateStudy needs write"));
  }
  AwaitAudit("\"who\":\"read\"");
  EXPECT_THAT(Audit(), testing::Not(HasSubstr("\"who\":\"root\"")));
  coordinator_->access().LeavePage(admin);
}

TEST_F(TlsGateTest, OnlyAdminsNameCommands) {
  const grpc::Status writer = Client(JoinOf("write")).CreateStudy(kWithCommand);
  EXPECT_EQ(writer.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(writer.error_message(), HasSubstr("trainer.command"));
  const grpc::Status admin = Client(JoinOf("admin")).CreateStudy(kWithCommand);
  EXPECT_TRUE(admin.ok()) << admin.error_message();
  AwaitAudit("\"method\":\"/hpo.v1.StudyService/CreateStudy\"");
}

// How a stream of gRPC's reflection ends whose client has sent `request` and nothing more.
grpc::StatusCode EndOfReflection(const std::shared_ptr<grpc::Channel>& channel,
                                 const std::string& request) {
  Call call;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto stream = stub.PrepareCall(
      &call, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  int step = 0;
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  stream->StartCall(&step);
  await();
  const grpc::Slice slice(request);
  stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), &step);
  await();
  grpc::ByteBuffer answer;
  stream->Read(&answer, &step);
  await();
  grpc::Status status;
  stream->Finish(&status, &step);
  await();
  return status.error_code();
}

TEST_F(TlsGateTest, ServicesOfGrpcAreForThoseWhoMayRead) {
  const std::string list("\x3a\x01*");  // ServerReflectionRequest{list_services: "*"}
  EXPECT_EQ(EndOfReflection(Client(JoinOf("read")).channel, list), grpc::StatusCode::OK);
  EXPECT_EQ(EndOfReflection(Client(JoinOf("work")).channel, list), grpc::StatusCode::CANCELLED);
  EXPECT_THAT(Audit(), HasSubstr("ServerReflectionInfo needs read"));
}

TEST_F(TlsGateTest, PlaintextIsRefusedAndAudited) {
  const int connection = Connect();
  const std::string text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  char buffer[256];
  ssize_t total = 0;
  while (const ssize_t size = recv(connection, buffer, sizeof(buffer), 0)) {
    if (size < 0) break;
    total += size;
  }
  EXPECT_LT(total, 16);  // an alert of TLS
  close(connection);
  AwaitAudit("\"event\":\"handshake\"");
}

TEST_F(TlsGateTest, AnUnknownSecretIsRefused) {
  tls::JoinString join = JoinOf("admin");
  join.secret[3] ^= 1;
  const Client stranger(join);
  const absl::Status status = stranger.forwarder->Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
  AwaitAudit("no such token");
}

TEST_F(TlsGateTest, ARevokedTokensConnectionsAreClosed) {
  const Client reader(JoinOf("read"));
  ASSERT_TRUE(reader.GetServer().ok());
  ASSERT_TRUE((*coordinator_->admin().Issuer())->Revoke("read").ok());
  // Each call takes a moment; the test's time-out ends it where the connection stays open.
  while (reader.GetServer().ok()) std::this_thread::yield();
  EXPECT_THAT(std::string(reader.forwarder->Check().message()), HasSubstr("revoked"));
  EXPECT_TRUE(Client(JoinOf("admin")).GetServer().ok());
}

TEST_F(TlsGateTest, ManyThatProveNothingDoNotKeepAnotherOut) {
  std::vector<int> idle;
  for (int i = 0; i < 400; ++i) idle.push_back(Connect());
  EXPECT_TRUE(Client(JoinOf("read")).GetServer().ok());
  for (const int connection : idle) close(connection);
}

// One connection of each of many addresses: it is the oldest one that makes room, whatever its
// address, and not the newcomer.
TEST_F(TlsGateTest, StrangersWithManyAddressesMakeRoomByAge) {
  std::vector<int> idle;
  // Addresses from 127.100.0.0 on sort behind 127.0.0.1.
  for (uint32_t i = 0; i < 256; ++i) idle.push_back(Connect(0x7f640000U + i));
  const int own = Connect();
  for (uint32_t i = 256; i < 300; ++i) idle.push_back(Connect(0x7f640000U + i));
  AwaitAudit("127.100.0.40:");  // 45 were dropped: the oldest
  EXPECT_EQ(Audit().find("\"from\":\"127.0.0.1:"), std::string::npos);
  for (const int connection : idle) close(connection);
  close(own);
}

TEST_F(TlsGateTest, AUnixSocketMayComeBeforeTheAddressWithTls) {
  coordinator_.reset();
  CoordinatorOptions options = Options();
  options.database = folder_ / "other" / "hpo.db";
  options.security.tls_on_loopback = true;
  options.also_listen = {options.listen};
  options.listen = {.unix_path = folder_ / "hpo.sock"};
  auto started = Coordinator::Start(options, clock_);
  ASSERT_TRUE(started.ok()) << started.status();
  coordinator_ = *std::move(started);
  folder_of_access_ = options.database + ".access";
  EXPECT_EQ(JoinOf("read").host, "127.0.0.1");
  EXPECT_TRUE(Client(JoinOf("read")).GetServer().ok());
}

TEST_F(TlsGateTest, TheSameJoinStringsHoldAfterARestart) {
  const tls::JoinString join = JoinOf("read");
  coordinator_.reset();
  CoordinatorOptions options = Options();
  options.security.tls_on_loopback = true;
  options.listen.port = join.port;
  coordinator_ = Coordinator::Start(options, clock_).value();
  EXPECT_TRUE(Client(join).GetServer().ok());
}

}  // namespace
}  // namespace hpo::server
