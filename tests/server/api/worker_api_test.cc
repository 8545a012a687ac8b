#include "server/api/worker_api.h"

#include "common/protocol/refusal.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

class WorkerApiTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    api_ = std::make_unique<WorkerApi>(*scheduler_);
  }

  std::unique_ptr<WorkerApi> api_;
};

TEST_F(WorkerApiTest, OneTrialFromRegistrationToResult) {
  AddStudy(PlainStudy());
  const auto registered = api_->RegisterWorker(MakeWorker("a"));
  ASSERT_TRUE(registered.ok()) << registered.status();
  EXPECT_EQ(registered->studies_version, 1);
  const auto acquired =
      api_->AcquireTrial(registered->session, "ask", absl::ZeroDuration(), GiB(8), nullptr);
  ASSERT_TRUE(acquired.ok() && acquired->assignment);
  const LeaseRef lease = acquired->assignment->lease;
  EXPECT_EQ(api_->Heartbeat(registered->session, {{.lease = lease}}, GiB(8))->directives.front(),
            Directive::kContinue);
  EXPECT_TRUE(api_->ReportMeasurements({.lease = lease}).ok());
  const FinishRequest request{.lease = lease,
                              .outcome = Completed{.metrics = {{"score", 1.0}}, .model_path = "m"},
                              .memory = {},
                              .final_plan = {},
                              .measurements = {{.step = 1, .epoch = 1, .metrics = {}}}};
  EXPECT_TRUE(api_->FinishTrial("tell", request)->stored);
  EXPECT_EQ(Load("plain", 0).trial.last_measurement->step, 1);
}

TEST_F(WorkerApiTest, RefusesWhatMakesNoSense) {
  AddStudy(PlainStudy());
  WorkerFacts nameless = MakeWorker("");
  WorkerFacts keyless = MakeWorker("a");
  keyless.instance_key.clear();
  const WorkerFacts negative = MakeWorker("a", Bytes{-1});
  for (const WorkerFacts& facts : {nameless, keyless, negative}) {
    EXPECT_TRUE(absl::IsInvalidArgument(api_->RegisterWorker(facts).status()));
  }
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_TRUE(absl::IsInvalidArgument(
      api_->AcquireTrial(session, "", absl::ZeroDuration(), Bytes{-1}, nullptr).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      api_->ReportMeasurements(
              {.lease = lease, .measurements = {{.step = -1, .epoch = 0, .metrics = {}}}})
          .status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      api_->ReleaseTrial("",
                         {.lease = lease, .reason = ReleaseReason::kRejected, .needed = Bytes{-1}})
          .status()));
  EXPECT_TRUE(absl::IsNotFound(
      api_->AcquireTrial("unknown", "", absl::ZeroDuration(), GiB(8), nullptr).status()));
  EXPECT_TRUE(api_->Heartbeat("unknown", {}, GiB(8))->register_again);
}

// A worker throws a result away, or stops a trial, only on a reason of the trial's own database.
TEST_F(WorkerApiTest, WhatTheDatabaseNeverTakesItSays) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(lease.database.size(), 32u);
  LeaseRef stale = lease;
  stale.token = "another";
  LeaseRef unknown = lease;
  unknown.trial.number.value = 77;
  LeaseRef nowhere = lease;
  nowhere.trial.study = "nowhere";
  LeaseRef elsewhere = lease;
  elsewhere.database = "00000000000000000000000000000000";
  const std::tuple<LeaseRef, absl::StatusCode, RefusalReason> cases[] = {
      {stale, absl::StatusCode::kAborted, RefusalReason::kSuperseded},
      {unknown, absl::StatusCode::kNotFound, RefusalReason::kUnknownTrial},
      {nowhere, absl::StatusCode::kNotFound, RefusalReason::kUnknownTrial},
      {elsewhere, absl::StatusCode::kFailedPrecondition, RefusalReason::kAnotherDatabase}};
  for (const auto& [told, code, reason] : cases) {
    SCOPED_TRACE(static_cast<int>(reason));
    const absl::Status refused[] = {
        api_->ReportMeasurements({.lease = told}).status(),
        api_->FinishTrial("", {.lease = told, .outcome = Completed{}}).status(),
        api_->ReleaseTrial("", {.lease = told, .reason = ReleaseReason::kPreempted}).status()};
    for (const absl::Status& status : refused) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_EQ(RefusalOf(status), (Refusal{reason, lease.database}));
    }
  }
  LeaseRef unnamed = lease;  // a client that knows no database
  unnamed.database.clear();
  EXPECT_TRUE(api_->ReportMeasurements({.lease = unnamed}).ok());
}

TEST_F(WorkerApiTest, ALeaseOfAnotherDatabaseIsNotDenied) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  LeaseRef lease = MustAcquire(session).lease;
  lease.trial.study = "nowhere";
  EXPECT_EQ(api_->Heartbeat(session, {{.lease = lease}}, GiB(8))->directives.front(),
            Directive::kLeaseLost);
  lease.database = "00000000000000000000000000000000";
  EXPECT_EQ(api_->Heartbeat(session, {{.lease = lease}}, GiB(8))->directives.front(),
            Directive::kContinue);
}

// The rest of a large result: late, and of an attempt whose lease is gone.
TEST_F(WorkerApiTest, PartsOfAResultNeedNoLease) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(api_->ReleaseTrial("", {.lease = lease, .reason = ReleaseReason::kPreempted}).ok());
  AttemptReport part{.lease = lease, .measurements = {{.step = 1, .epoch = 1, .metrics = {}}}};
  EXPECT_TRUE(absl::IsAborted(api_->ReportMeasurements(part).status()));
  part.of_result = true;
  EXPECT_TRUE(api_->ReportMeasurements(part).ok());
  EXPECT_TRUE(api_->ReportMeasurements(part).ok()) << "sent again";
  part.lease.token = "another";
  EXPECT_TRUE(absl::IsAborted(api_->ReportMeasurements(part).status()));
}

TEST_F(WorkerApiTest, WhatAWorkerSaysStandsInTheStatus) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  ASSERT_TRUE(api_->Heartbeat(session, {}, GiB(8), "the state folder is full").ok());
  EXPECT_EQ(DescribeStudy(scheduler_->state(), "plain")->workers.front().notice,
            "the state folder is full");
}

TEST_F(WorkerApiTest, NobodyRegistersWhileDraining) {
  scheduler_->state().work.Drain();
  EXPECT_TRUE(absl::IsUnavailable(api_->RegisterWorker(MakeWorker("a")).status()));
}

}  // namespace
}  // namespace hpo::server
