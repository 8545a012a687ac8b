#include "server/rpc/rpc_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

// A server that the test owns, in addition to the fixture's coordinator.
class RpcServerTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    CoordinatorFixture::SetUp();
    auto started = StartAt({.host = "127.0.0.1", .port = 0});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    own_channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }

  // It calls the parts of the coordinator, so it ends first.
  void TearDown() override {
    server_.reset();
    CoordinatorFixture::TearDown();
  }

  absl::StatusOr<std::unique_ptr<RpcServer>> StartAt(const ListenAddress& address) {
    const RpcApis apis{.studies = coordinator_->studies(),
                       .workers = coordinator_->workers(),
                       .admin = coordinator_->admin(),
                       .fleet = coordinator_->fleet(),
                       .analysis = coordinator_->analysis(),
                       .optuna = coordinator_->optuna(),
                       .access = coordinator_->access(),
                       .tokens = coordinator_->tokens()};
    return RpcServer::Start({.listen = {address}, .tls = std::nullopt}, apis);
  }

  // A unary call as a client without our stubs makes it: bytes in, bytes out.
  grpc::Status CallRaw(const std::string& method, const std::string& request,
                       std::string& response) {
    Call call;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(own_channel_);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer out(&slice, 1);
    grpc::ByteBuffer in;
    grpc::Status status;
    const auto reader = stub.PrepareUnaryCall(&call, method, out, &queue);
    reader->StartCall();
    reader->Finish(&in, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    grpc::Slice whole;
    if (status.ok() && in.DumpToSingleSlice(&whole).ok()) {
      response.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
    }
    return status;
  }

  // grpc.health.v1.HealthCheckResponse: field 1, a varint. 1 = SERVING, 2 = NOT_SERVING.
  int Health() {
    std::string response;
    const grpc::Status status = CallRaw("/grpc.health.v1.Health/Check", "", response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.size() == 2 ? response[1] : -1;
  }

  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> own_channel_;
};

TEST_F(RpcServerTest, HealthFollowsTheServer) {
  EXPECT_EQ(Health(), 1);
  server_->StopAdvertising();
  EXPECT_EQ(Health(), 2);
  std::string response;
  EXPECT_TRUE(CallRaw("/hpo.v1.StudyService/ListStudies", "", response).ok());
}

TEST_F(RpcServerTest, ReflectionIsThere) {
  Call call;
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(own_channel_);
  const auto stream = stub.PrepareCall(
      &call, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  const auto step = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  stream->StartCall(this);
  ASSERT_TRUE(step());
  // ServerReflectionRequest{list_services: "*"}: field 7, one byte.
  const grpc::Slice request(std::string("\x3a\x01*"));
  stream->Write(grpc::ByteBuffer(&request, 1), this);
  ASSERT_TRUE(step());
  grpc::ByteBuffer answer;
  stream->Read(&answer, this);
  ASSERT_TRUE(step());
  grpc::Slice whole;
  ASSERT_TRUE(answer.DumpToSingleSlice(&whole).ok());
  const std::string text(reinterpret_cast<const char*>(whole.begin()), whole.size());
  for (const char* service :
       {"hpo.v1.StudyService", "hpo.v1.WorkerService", "grpc.health.v1.Health"}) {
    EXPECT_NE(text.find(service), std::string::npos) << service;
  }
}

TEST_F(RpcServerTest, APortBelongsToOneServer) {
  const auto second = StartAt(ParseListenAddress(server_->address()).value());
  EXPECT_EQ(second.status().message(), server_->address() + " is in use");
}

TEST_F(RpcServerTest, ShutdownIsIdempotentAndFreesThePort) {
  const std::string address = server_->address();
  server_->Shutdown(absl::Seconds(5));
  server_->Shutdown(absl::ZeroDuration());
  const auto next = StartAt(ParseListenAddress(address).value());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->address(), address);
}

}  // namespace
}  // namespace hpo::server
