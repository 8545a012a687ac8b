#include "server/api/worker_api.h"

#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo {
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
  EXPECT_EQ(registered->lease_ttl, kTtl);
  EXPECT_EQ(registered->server_epoch, 1);
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
      api_->ReleaseTrial("", lease, ReleaseReason::kRejected, Bytes{-1}, "").status()));
  EXPECT_TRUE(absl::IsNotFound(
      api_->AcquireTrial("unknown", "", absl::ZeroDuration(), GiB(8), nullptr).status()));
  EXPECT_TRUE(api_->Heartbeat("unknown", {}, GiB(8))->register_again);
}

TEST_F(WorkerApiTest, NobodyRegistersWhileDraining) {
  scheduler_->Drain();
  EXPECT_TRUE(absl::IsUnavailable(api_->RegisterWorker(MakeWorker("a")).status()));
}

}  // namespace
}  // namespace hpo
