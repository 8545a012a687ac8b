// A whole server in this process: real database file, real scheduler, gRPC on a free loopback port.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "gtest/gtest.h"
#include "hpo/v1/study.grpc.pb.h"
#include "hpo/v1/worker.grpc.pb.h"
#include "server/coordinator.h"

namespace hpo::server {

// One parameter, no model: any worker can run it, and nothing is known of its memory.
inline constexpr char kPlainStudy[] = R"(
name: plain
objective: {metric: score, direction: maximize}
trainer: {train: train.jsonl, validation: valid.jsonl, epochs: 1}
budget: {trials: 4}
memory: {policy: off}
sampler: {type: random, seed: 1}
pruner: {type: none}
parameters:
  train.batch_size: {int: [1, 64]}
  train.lr: {float: [1.0e-6, 1.0e-4], log: true}
  head: {choices: [linear, deep]}
)";

// A call's context with a deadline that no healthy call meets.
class Call : public grpc::ClientContext {
 public:
  explicit Call(std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    set_deadline(std::chrono::system_clock::now() + limit);
  }
};

class CoordinatorFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/coordinator_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Start();
  }

  void TearDown() override {
    coordinator_.reset();
    std::filesystem::remove_all(folder_);
  }

  CoordinatorOptions Options() const {
    return CoordinatorOptions{.database = folder_ / "state" / "hpo.db",
                              .listen = {.host = "127.0.0.1", .port = 0}};
  }

  void Start() { Start(Options()); }

  void Start(const CoordinatorOptions& options) {
    absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(options, clock_);
    ASSERT_TRUE(started.ok()) << started.status();
    coordinator_ = *std::move(started);
    channel_ = grpc::CreateChannel(coordinator_->address(), grpc::InsecureChannelCredentials());
    studies_ = v1::StudyService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
  }

  grpc::Status Create(const std::string& yaml, v1::CreateStudyResponse* response = nullptr) {
    Call call;
    v1::CreateStudyRequest request;
    request.set_yaml(yaml);
    request.set_origin("my.yaml");
    v1::CreateStudyResponse ignored;
    return studies_->CreateStudy(&call, request, response == nullptr ? &ignored : response);
  }

  v1::Study Get(const std::string& name = "plain") {
    Call call;
    v1::GetStudyRequest request;
    request.set_name(name);
    v1::GetStudyResponse response;
    const grpc::Status status = studies_->GetStudy(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.study();
  }

  // A worker without models or data of ours; returns its session.
  std::string Register(const std::string& name = "host:cpu") {
    Call call;
    v1::RegisterWorkerRequest request;
    request.set_worker(name);
    request.set_instance_key(name + "-1");
    request.set_trainer("fake-trainer");
    request.mutable_device()->set_kind("cpu");
    request.set_capacity_bytes(int64_t{8} << 30);
    v1::RegisterWorkerResponse response;
    const grpc::Status status = workers_->RegisterWorker(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.session();
  }

  v1::AcquireTrialResponse Acquire(const std::string& session, const std::string& request_id) {
    Call call;
    v1::AcquireTrialRequest request;
    request.set_session(session);
    request.set_request_id(request_id);
    request.set_capacity_bytes(int64_t{8} << 30);
    v1::AcquireTrialResponse response;
    const grpc::Status status = workers_->AcquireTrial(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::FinishTrialRequest Finishing(const v1::Assignment& assignment, const v1::Outcome& outcome) {
    v1::FinishTrialRequest request;
    request.set_request_id("finish-" + assignment.lease_token());
    request.set_study(assignment.study());
    request.set_trial(assignment.trial());
    request.set_attempt(assignment.attempt());
    request.set_lease_token(assignment.lease_token());
    *request.mutable_outcome() = outcome;
    *request.mutable_final_plan() = assignment.plan();
    return request;
  }

  v1::FinishTrialResponse Finish(const v1::Assignment& assignment, const v1::Outcome& outcome) {
    Call call;
    v1::FinishTrialResponse response;
    const grpc::Status status =
        workers_->FinishTrial(&call, Finishing(assignment, outcome), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::FinishTrialResponse Complete(const v1::Assignment& assignment, double score,
                                   const std::string& model_path = "") {
    v1::Outcome outcome;
    (*outcome.mutable_completed()->mutable_metrics())["score"] = score;
    outcome.mutable_completed()->set_model_path(model_path);
    return Finish(assignment, outcome);
  }

  std::filesystem::path folder_;
  SystemClock clock_;
  std::unique_ptr<Coordinator> coordinator_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::StudyService::Stub> studies_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

}  // namespace hpo::server
