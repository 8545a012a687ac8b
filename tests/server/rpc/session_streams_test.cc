// WorkerService.Attend over gRPC, on a scheduler whose clock the test moves.
#include "server/rpc/session_streams.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "hpo/v1/worker.grpc.pb.h"
#include "server/rpc/worker_service.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

// A client's end of a stream, with a connection of its own.
class Attending {
 public:
  Attending(const std::string& address, const std::string& session) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::WorkerService::NewStub(channel_);
    v1::AttendRequest request;
    request.set_session(session);
    reader_ = stub_->Attend(&context_, request);
    reader_->WaitForInitialMetadata();
  }
  ~Attending() { Close(); }

  void Close() {
    if (reader_ == nullptr) return;
    context_.TryCancel();
    End();
  }
  // Waits for it.
  grpc::StatusCode End() {
    v1::AttendResponse none;
    EXPECT_FALSE(reader_->Read(&none)) << "nothing is sent";
    const grpc::StatusCode code = reader_->Finish().error_code();
    reader_.reset();
    return code;
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::AttendResponse>> reader_;
};

class SessionStreamsTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    api_ = std::make_unique<WorkerApi>(*scheduler_);
    queries_ = std::make_unique<StudyQueries>(*scheduler_);
    service_ = std::make_unique<WorkerServiceImpl>(*api_, *queries_, access_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  void TearDown() override {
    service_->EndStreams();
    server_->Shutdown();
  }

  bool IsCutOff(const std::string& worker) {
    return scheduler_->state().workers.Find(worker)->cut_off_at.has_value();
  }
  // Ends with the test's time-out where it is not.
  void AwaitCutOff(const std::string& worker) {
    while (!IsCutOff(worker)) std::this_thread::yield();
  }

  std::unique_ptr<WorkerApi> api_;
  const SystemClock system_clock_;
  AuditLog audit_{"", system_clock_};
  AccessControl access_{audit_, system_clock_};
  std::unique_ptr<StudyQueries> queries_;
  std::unique_ptr<WorkerServiceImpl> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(SessionStreamsTest, TheEndOfAConnectionIsThatOfTheSession) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  MustAcquire(session);
  Attending stream(address_, session);
  EXPECT_FALSE(IsCutOff("a"));
  stream.Close();
  AwaitCutOff("a");
  clock_.Advance(AttendanceGrace({.ttl = kTtl}) + absl::Seconds(1));
  ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kQueued);
}

TEST_F(SessionStreamsTest, AStreamThatIsOpenedAgainTakesThePlaceOfTheFirst) {
  const std::string session = Register(MakeWorker("a"));
  Attending first(address_, session);
  Attending second(address_, session);
  EXPECT_EQ(first.End(), grpc::StatusCode::ABORTED);
  EXPECT_FALSE(IsCutOff("a"));
  second.Close();
  AwaitCutOff("a");
  Attending third(address_, session);
  EXPECT_FALSE(IsCutOff("a"));
}

TEST_F(SessionStreamsTest, AnUnknownSessionHasToRegister) {
  EXPECT_EQ(Attending(address_, "unknown").End(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(SessionStreamsTest, AServerThatEndsTakesNobodyForLost) {
  const std::string session = Register(MakeWorker("a"));
  Attending stream(address_, session);
  service_->EndStreams();
  EXPECT_EQ(stream.End(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Attending(address_, session).End(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(IsCutOff("a"));
}

size_t NumThreads() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                           std::filesystem::directory_iterator()));
}

TEST_F(SessionStreamsTest, StreamsHoldNoThreads) {
  constexpr int kStreams = 200;
  const size_t before = NumThreads();
  std::vector<std::unique_ptr<Attending>> streams;
  for (int i = 0; i < kStreams; ++i) {
    const std::string session = Register(MakeWorker(absl::StrCat("w", i)));
    streams.push_back(std::make_unique<Attending>(address_, session));
  }
  EXPECT_LT(NumThreads(), before + kStreams / 4);
}

}  // namespace
}  // namespace hpo::server
