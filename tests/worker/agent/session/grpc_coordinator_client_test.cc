// The gRPC client against a scripted service on a loopback port.
#include "worker/agent/session/grpc_coordinator_client.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "hpo/v1/worker.grpc.pb.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;

// Answers with what a test has put into its fields, and keeps the last request of each kind.
class ScriptedWorkers final : public v1::WorkerService::Service {
 public:
  grpc::Status RegisterWorker(grpc::ServerContext*, const v1::RegisterWorkerRequest* request,
                              v1::RegisterWorkerResponse* response) override {
    registered_ = *request;
    response->set_session("s1");
    return status_;
  }
  grpc::Status AcquireTrial(grpc::ServerContext* context, const v1::AcquireTrialRequest* request,
                            v1::AcquireTrialResponse* response) override {
    acquired_ = *request;
    if (hold_) {
      holding_.Notify();
      // Until the caller cancels; a missed cancellation ends with the test's time-out.
      while (!context->IsCancelled()) std::this_thread::yield();
    }
    response->set_waiting_for("nothing");
    return status_;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    beat_ = *request;
    response->add_directives(v1::DIRECTIVE_LEASE_LOST);
    return status_;
  }
  grpc::Status Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                      grpc::ServerWriter<v1::AttendResponse>* writer) override {
    {
      absl::MutexLock lock(&mutex_);
      attended_.push_back(request->session());
    }
    if (!attend_status_.ok()) return attend_status_;
    writer->SendInitialMetadata();
    const absl::Time opened = absl::Now();
    while (!context->IsCancelled() && absl::Now() - opened < stream_lasts_) {
      std::this_thread::yield();
    }
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
  }
  // The sessions of the streams so far, once there are `num`.
  std::vector<std::string> AwaitStreams(size_t num) {
    absl::MutexLock lock(&mutex_);
    const auto there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return attended_.size() >= num; };
    mutex_.Await(absl::Condition(&there));
    return attended_;
  }
  // Two pages.
  grpc::Status ListServedStudies(grpc::ServerContext*, const v1::ListServedStudiesRequest* request,
                                 v1::ListServedStudiesResponse* response) override {
    v1::ServedStudy& study = *response->add_studies();
    study.set_train("train.jsonl");
    study.set_validation("valid.jsonl");
    study.set_task("multi-query");
    study.add_parameters("train.lr");
    study.set_name(request->page_token().empty() ? "first" : "second");
    if (!request->page_token().empty()) return grpc::Status::OK;
    v1::ServedStudy& finished = *response->add_studies();
    finished.set_name("old");
    finished.mutable_end()->set_study("old");
    finished.mutable_end()->set_why("its budget is used up");
    response->set_next_page_token("second page");
    return grpc::Status::OK;
  }
  grpc::Status ReportMeasurements(grpc::ServerContext*,
                                  const v1::ReportMeasurementsRequest* request,
                                  v1::ReportMeasurementsResponse* response) override {
    reported_ = *request;
    response->set_should_stop(true);
    return status_;
  }
  grpc::Status FinishTrial(grpc::ServerContext*, const v1::FinishTrialRequest* request,
                           v1::FinishTrialResponse* response) override {
    ++num_finishes_;
    finished_ = *request;
    response->set_state(v1::TRIAL_STATE_COMPLETED);
    response->set_stored(true);
    return num_finishes_ <= num_unavailable_
               ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting")
               : status_;
  }
  grpc::Status ReleaseTrial(grpc::ServerContext*, const v1::ReleaseTrialRequest* request,
                            v1::ReleaseTrialResponse* response) override {
    released_ = *request;
    response->set_state(v1::TRIAL_STATE_QUEUED);
    return status_;
  }

  grpc::Status AcquirePreflight(grpc::ServerContext*, const v1::AcquirePreflightRequest* request,
                                v1::AcquirePreflightResponse* response) override {
    preflight_asked_ = *request;
    if (preflights_) {
      response->mutable_preflight()->set_id("p1");
      v1::Assignment& assignment = *response->mutable_preflight()->mutable_assignment();
      assignment.set_memory_policy("plan");
      assignment.mutable_plan()->set_micro_batch(1);
      assignment.mutable_plan()->set_effective_batch(1);
      assignment.mutable_objective()->set_direction(v1::DIRECTION_MINIMIZE);
    }
    return status_;
  }
  grpc::Status ReportPreflight(grpc::ServerContext*, const v1::ReportPreflightRequest* request,
                               v1::ReportPreflightResponse*) override {
    preflight_reported_ = *request;
    return status_;
  }

  grpc::Status status_;
  grpc::Status attend_status_;
  absl::Duration stream_lasts_ = absl::InfiniteDuration();
  absl::Mutex mutex_;
  std::vector<std::string> attended_ ABSL_GUARDED_BY(mutex_);
  bool hold_ = false;
  int num_unavailable_ = 0;
  absl::Notification holding_;
  std::atomic<int> num_finishes_{0};
  v1::RegisterWorkerRequest registered_;
  v1::AcquireTrialRequest acquired_;
  v1::HeartbeatRequest beat_;
  v1::ReportMeasurementsRequest reported_;
  v1::FinishTrialRequest finished_;
  v1::ReleaseTrialRequest released_;
  bool preflights_ = false;
  v1::AcquirePreflightRequest preflight_asked_;
  v1::ReportPreflightRequest preflight_reported_;
};

class GrpcCoordinatorClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&workers_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = "127.0.0.1:" + std::to_string(port);
    client_ = ConnectCoordinator({.shown = address_, .dialed = address_, .forwarder = nullptr});
  }
  void TearDown() override { server_->Shutdown(std::chrono::system_clock::now()); }

  static LeaseRef Lease() {
    return {.trial = {.study = "s", .number = {1}}, .attempt = {2}, .token = "t"};
  }

  ScriptedWorkers workers_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::unique_ptr<CoordinatorClient> client_;
};

TEST_F(GrpcCoordinatorClientTest, EveryCallCarriesItsSessionAndRequestId) {
  EXPECT_EQ(client_->RegisterWorker({.worker = "w", .instance_key = "k"}, "")->session, "s1");
  EXPECT_EQ(workers_.registered_.worker(), "w");

  const auto acquired =
      client_->AcquireTrial("s1", "r1", absl::Seconds(7), MiB(5), [] { return false; });
  ASSERT_TRUE(acquired.ok()) << acquired.status();
  EXPECT_EQ(acquired->waiting_for, "nothing");
  EXPECT_EQ(workers_.acquired_.session(), "s1");
  EXPECT_EQ(workers_.acquired_.request_id(), "r1");
  EXPECT_EQ(workers_.acquired_.wait().seconds(), 7);
  EXPECT_EQ(workers_.acquired_.capacity_bytes(), 5 << 20);

  const auto beat =
      client_->Heartbeat("s1", {{.lease = Lease(), .step = 3}}, MiB(6), "full", /*leaving=*/false);
  EXPECT_THAT(beat->directives, ElementsAre(Directive::kLeaseLost));
  EXPECT_EQ(workers_.beat_.session(), "s1");
  EXPECT_EQ(workers_.beat_.leases(0).step(), 3);
  EXPECT_EQ(workers_.beat_.capacity_bytes(), 6 << 20);
  EXPECT_EQ(workers_.beat_.notice(), "full");

  EXPECT_TRUE(client_->ReportMeasurements("s1", {.lease = Lease()})->should_stop);
  EXPECT_EQ(workers_.reported_.session(), "s1");

  EXPECT_EQ(client_->FinishTrial("s1", "r2", {.lease = Lease()})->state, TrialState::kCompleted);
  EXPECT_EQ(workers_.finished_.session(), "s1");
  EXPECT_EQ(workers_.finished_.request_id(), "r2");

  EXPECT_EQ(*client_->ReleaseTrial("s1", "r3", {.lease = Lease()}), TrialState::kQueued);
  EXPECT_EQ(workers_.released_.session(), "s1");
  EXPECT_EQ(workers_.released_.request_id(), "r3");
}

TEST_F(GrpcCoordinatorClientTest, DryRunsAreAskedForAndReported) {
  const auto ask = [this] {
    return client_->AcquirePreflight("s1", absl::Seconds(30), [] { return false; });
  };
  EXPECT_EQ(ask()->has_value(), false);
  EXPECT_EQ(workers_.preflight_asked_.session(), "s1");
  EXPECT_EQ(workers_.preflight_asked_.wait().seconds(), 30);
  workers_.preflights_ = true;
  const absl::StatusOr<std::optional<Preflight>> asked = ask();
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ((*asked)->id, "p1");
  EXPECT_TRUE(client_->ReportPreflight("s1", {.id = "p1", .message = "why"}).ok());
  EXPECT_EQ(workers_.preflight_reported_.session(), "s1");
  EXPECT_EQ(workers_.preflight_reported_.id(), "p1");
  EXPECT_EQ(workers_.preflight_reported_.message(), "why");
  workers_.status_ = grpc::Status(grpc::StatusCode::NOT_FOUND, "unknown session");
  EXPECT_TRUE(absl::IsNotFound(ask().status()));
  EXPECT_TRUE(absl::IsNotFound(client_->ReportPreflight("s1", {})));
}

TEST_F(GrpcCoordinatorClientTest, StudiesComeByPagesAndSayWhichHaveEnded) {
  const absl::StatusOr<std::vector<StudyData>> studies = client_->ListStudyData();
  std::vector<std::string> running;
  std::vector<FinishedStudy> ended;
  for (const StudyData& study : *studies) {
    EXPECT_EQ(study.train, study.end ? "" : "train.jsonl");
    EXPECT_EQ(study.parameters.size(), study.end ? 0u : 1u);
    study.end ? ended.push_back(*study.end) : running.push_back(study.study);
  }
  EXPECT_THAT(running, ElementsAre("first", "second"));
  EXPECT_THAT(ended, ElementsAre(FinishedStudy{"old", "its budget is used up"}));
}

TEST_F(GrpcCoordinatorClientTest, AnErrorKeepsItsCodeAndMessage) {
  workers_.status_ = grpc::Status(grpc::StatusCode::ABORTED, "attempt 3 holds the lease");
  for (const absl::Status& status :
       {client_->ReportMeasurements("s", {.lease = Lease()}).status(),
        client_->FinishTrial("s", "r", {.lease = Lease()}).status(),
        client_->ReleaseTrial("s", "r", {.lease = Lease()}).status(),
        client_->AcquireTrial("s", "r", absl::Seconds(1), {}, [] { return false; }).status()}) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_EQ(status.message(), "attempt 3 holds the lease");
    EXPECT_FALSE(IsServerAway(status));
  }
}

TEST_F(GrpcCoordinatorClientTest, AShortInterruptionIsRidden) {
  workers_.num_unavailable_ = 2;
  const auto finished = client_->FinishTrial("s", "r", {.lease = Lease()});
  EXPECT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(workers_.num_finishes_, 3);
}

TEST_F(GrpcCoordinatorClientTest, WhoBeatsHoldsAStreamOfItsSession) {
  for (const char* session : {"s1", "s1", "s2", "s2"}) {
    EXPECT_TRUE(client_->Heartbeat(session, {{.lease = Lease()}}, {}, "", /*leaving=*/false).ok());
  }
  while (workers_.AwaitStreams(1).back() != "s2") {
    EXPECT_TRUE(client_->Heartbeat("s2", {{.lease = Lease()}}, {}, "", /*leaving=*/false).ok());
  }
  EXPECT_THAT(workers_.AwaitStreams(2), ElementsAre("s1", "s2"));
  client_.reset();
  EXPECT_THAT(workers_.AwaitStreams(2), ElementsAre("s1", "s2")) << "ended with the client";
}

TEST_F(GrpcCoordinatorClientTest, AStreamThatEndsIsOpenedAgainWithoutABeat) {
  workers_.stream_lasts_ = absl::Milliseconds(1200);
  EXPECT_TRUE(client_->Heartbeat("s1", {{.lease = Lease()}}, {}, "", /*leaving=*/false).ok());
  EXPECT_THAT(workers_.AwaitStreams(3), ElementsAre("s1", "s1", "s1"));
}

TEST_F(GrpcCoordinatorClientTest, AServerThatKnowsNoStreamsIsNotAskedAgain) {
  workers_.attend_status_ = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  EXPECT_TRUE(client_->Heartbeat("s1", {{.lease = Lease()}}, {}, "", /*leaving=*/false).ok());
  workers_.AwaitStreams(1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(client_->Heartbeat("s1", {{.lease = Lease()}}, {}, "", /*leaving=*/false).ok());
  }
  EXPECT_THAT(workers_.AwaitStreams(1), ElementsAre("s1"));
}

TEST_F(GrpcCoordinatorClientTest, AClientMayEndWhileItsStreamDoes) {
  workers_.attend_status_ = grpc::Status(grpc::StatusCode::ABORTED, "");
  for (int i = 0; i < 300; ++i) {
    const auto client =
        ConnectCoordinator({.shown = address_, .dialed = address_, .forwarder = nullptr});
    EXPECT_TRUE(client->Heartbeat("s1", {{.lease = Lease()}}, {}, "", /*leaving=*/false).ok());
    workers_.AwaitStreams(i + 1);
    // The client hears of the end about now: a little before the next call's end, or after.
    for (int call = 0; call < i % 3; ++call) {
      EXPECT_TRUE(client->Heartbeat("s1", {}, {}, "", /*leaving=*/true).ok());
    }
  }
}

TEST_F(GrpcCoordinatorClientTest, ALongPollEndsWhenTheWorkerDrains) {
  workers_.hold_ = true;
  std::atomic<bool> draining{false};
  std::thread signaller([&] {
    workers_.holding_.WaitForNotification();
    draining = true;
  });
  const absl::Time start = absl::Now();
  const absl::Status status =
      client_->AcquireTrial("s", "r", absl::Seconds(50), {}, [&] { return draining.load(); })
          .status();
  signaller.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
}

TEST_F(GrpcCoordinatorClientTest, WithoutAServerCallsFailInsteadOfWaiting) {
  server_->Shutdown(std::chrono::system_clock::now());
  const absl::Status status = client_->RegisterWorker({.worker = "w"}, "").status();
  EXPECT_TRUE(IsServerAway(status)) << status;
}

}  // namespace
}  // namespace hpo::agent
