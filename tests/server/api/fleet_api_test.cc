#include "server/api/fleet_api.h"

#include <thread>

#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FleetApiTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    api_ = std::make_unique<FleetApi>(*scheduler_);
    AddStudy(EndlessStudy("plain", 100));
  }

  Directive Beat(const std::string& session, const LeaseRef& lease) {
    const auto beat = scheduler_->sessions().Heartbeat(session, {{.lease = lease}}, GiB(8));
    EXPECT_TRUE(beat.ok()) << beat.status();
    return beat.ok() ? beat->directives.front() : Directive::kLeaseLost;
  }

  std::unique_ptr<FleetApi> api_;
};

TEST_F(FleetApiTest, ListsWorkersWithWhatTheyRun) {
  EXPECT_TRUE(api_->ListWorkers().empty());
  const std::string session = Register(MakeWorker("a"));
  Register(MakeWorker("b"));
  MustAcquire(session);
  const std::vector<WorkerStatus> workers = api_->ListWorkers();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].name, "a");
  EXPECT_EQ(workers[0].trial, (TrialId{"plain", TrialNumber{0}}));
  EXPECT_EQ(workers[0].capacity, GiB(8));
  EXPECT_TRUE(workers[1].alive);
  EXPECT_FALSE(workers[1].trial || workers[1].drained);
}

TEST_F(FleetApiTest, SaysHowFarTheTrialOfAWorkerIs) {
  const std::string session = Register(MakeWorker("a"));
  const absl::Time start = clock_.Now();
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_EQ(api_->ListWorkers().front().trial_started, start);
  EXPECT_EQ(api_->ListWorkers().front().stage, "");
  clock_.Advance(absl::Seconds(5));
  const LeaseBeat beat{.lease = lease,
                       .step = 40,
                       .stage = "Training Start",
                       .allocated = GiB(3),
                       .reserved = GiB(4)};
  ASSERT_TRUE(scheduler_->sessions().Heartbeat(session, {beat}, GiB(8)).ok());
  const WorkerStatus running = api_->ListWorkers().front();
  EXPECT_EQ(running.step, 40);
  EXPECT_EQ(running.stage, "Training Start");
  EXPECT_EQ(running.allocated, GiB(3));
  EXPECT_EQ(running.reserved, GiB(4));
  EXPECT_EQ(running.trial_started, start);
  EXPECT_EQ(running.idle_because, "");
  EXPECT_EQ(running.gpus, 1);
  Complete(lease, 0.5);
  const WorkerStatus idle = api_->ListWorkers().front();
  EXPECT_EQ(idle.step, 0);
  EXPECT_EQ(idle.stage, "");
  EXPECT_EQ(idle.allocated, Bytes{});
  EXPECT_EQ(idle.trial_started, absl::InfinitePast());
}

TEST_F(FleetApiTest, SaysWhyAWorkerIsIdle) {
  const std::string session = Register(MakeWorker("a"));
  const auto why = [&] { return api_->ListWorkers().front().idle_because; };
  EXPECT_EQ(why(), "") << "it has not asked";
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kPause, false).ok());
  EXPECT_FALSE(Acquire(session).assignment);
  EXPECT_EQ(why(), "study plain: paused");
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kRun, false).ok());
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_EQ(why(), "") << "it has a trial";
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kStop, false).ok());
  Complete(lease, 0.5);
  EXPECT_TRUE(Acquire(session).all_studies_finished);
  EXPECT_EQ(why(), "its studies have ended");
  ASSERT_TRUE(api_->DrainWorkers({.names = {"a"}}, /*now=*/false).ok());
  EXPECT_EQ(why(), "drained; to go on: hpo worker resume a") << "before it asks again";
  ASSERT_TRUE(scheduler_->sessions().Heartbeat(session, {}, GiB(8), "", Goodbye::kLeaving).ok());
  EXPECT_FALSE(api_->ListWorkers().front().alive);
  EXPECT_EQ(why(), "drained; to go on: hpo worker resume a") << "it has ended in order";
  ASSERT_TRUE(api_->ResumeWorkers({.names = {"a"}}).ok());
  EXPECT_EQ(why(), "") << "a worker that is gone is not idle";
}

TEST_F(FleetApiTest, SaysWhatAWorkerWaitsForAsItIsNow) {
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kPause, false).ok());
  AddStudy(EndlessStudy("short", 1));
  const std::string first = Register(MakeWorker("a"));
  const std::string second = Register(MakeWorker("b"));
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kStop, false).ok());
  MustAcquire(first);
  EXPECT_FALSE(Acquire(second).assignment);
  EXPECT_EQ(api_->ListWorkers()[1].idle_because,
            "study short: the rest of its budget is handed out, and this worker takes what comes "
            "back; running: trial #0 on a");
  clock_.Advance(kTtl);
  ASSERT_TRUE(scheduler_->sessions().Heartbeat(second, {}, GiB(8)).ok());
  EXPECT_THAT(api_->ListWorkers()[1].idle_because, HasSubstr("has not been heard of for 60 s"));
}

TEST_F(FleetApiTest, SaysWhyAWorkerServesNoStudy) {
  WorkerFacts four = MakeWorker("four");
  four.gpus = 4;
  four.device.kind = "cuda";
  four.device.name = "NVIDIA T4";
  Register(four);
  Register(MakeWorker("one"));
  const std::vector<WorkerStatus> workers = api_->ListWorkers();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[0].device, "4 x NVIDIA T4");
  EXPECT_THAT(workers[0].notice, HasSubstr("start hpo-worker with --gpus-per-trial 1"));
  EXPECT_EQ(workers[1].notice, "");
}

TEST_F(FleetApiTest, ADrainedWorkerFinishesItsTrialAndGetsNoOther) {
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  const auto drained = api_->DrainWorkers({.names = {"a"}}, /*now=*/false);
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_THAT(*drained, ElementsAre("a"));
  EXPECT_EQ(Beat(session, lease), Directive::kContinue);
  EXPECT_TRUE(Complete(lease, 1.0).stored);
  const AcquireResult answer = Acquire(session);
  EXPECT_TRUE(answer.drained);
  EXPECT_FALSE(answer.assignment);
  EXPECT_THAT(answer.waiting_for, HasSubstr("hpo worker resume a"));
  EXPECT_TRUE(api_->ListWorkers().front().drained);
}

TEST_F(FleetApiTest, DrainedNowTheTrialGoesBackAndAnotherGetsIt) {
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(api_->DrainWorkers({.names = {"a"}}, /*now=*/true).ok());
  EXPECT_EQ(Beat(session, lease), Directive::kPreempted);
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial(
                      "", {.lease = lease, .reason = ReleaseReason::kPreempted, .note = "ordered"})
                  .ok());
  EXPECT_TRUE(Acquire(session).drained);
  EXPECT_EQ(MustAcquire(Register(MakeWorker("b"))).lease.trial, lease.trial);
}

// An engine may start it again, and the server may have been started anew.
TEST_F(FleetApiTest, StaysDrainedUntilItIsResumed) {
  Register(MakeWorker("a"));
  ASSERT_TRUE(api_->DrainWorkers({.names = {"a"}}, /*now=*/false).ok());
  Restart();
  api_ = std::make_unique<FleetApi>(*scheduler_);
  WorkerFacts again = MakeWorker("a");
  again.instance_key = "a-2";
  const std::string session = Register(again);
  EXPECT_TRUE(Acquire(session).drained);
  EXPECT_THAT(*api_->ResumeWorkers({.names = {"a"}}), ElementsAre("a"));
  EXPECT_TRUE(Acquire(session).assignment);
  Restart();
  again.instance_key = "a-3";
  EXPECT_FALSE(Acquire(Register(again, "a-2")).drained);
}

TEST_F(FleetApiTest, AllAreThoseThatLiveAndThoseThatAreDrained) {
  const std::string first = Register(MakeWorker("a"));
  const std::string second = Register(MakeWorker("b"));
  EXPECT_THAT(*api_->DrainWorkers({.all = true}, /*now=*/false), ElementsAre("a", "b"));
  EXPECT_TRUE(Acquire(first).drained && Acquire(second).drained);
  EXPECT_TRUE(Acquire(Register(MakeWorker("c"))).assignment) << "it came later";
  EXPECT_THAT(*api_->ResumeWorkers({.all = true}), ElementsAre("a", "b"));
  EXPECT_TRUE(Acquire(first).assignment && Acquire(second).assignment);
  EXPECT_TRUE(api_->ResumeWorkers({.all = true})->empty());
}

TEST_F(FleetApiTest, AWorkerThatWaitsIsToldAtOnce) {
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kPause, false).ok());
  const std::string session = Register(MakeWorker("a"));
  AcquireResult answer;
  std::thread waiting([&] {
    const auto acquired =
        scheduler_->dispatcher().AcquireTrial(session, "", absl::Seconds(40), GiB(8), nullptr);
    if (acquired.ok()) answer = *acquired;
  });
  EXPECT_TRUE(api_->DrainWorkers({.names = {"a"}}, /*now=*/false).ok());
  waiting.join();
  EXPECT_TRUE(answer.drained);
}

TEST_F(FleetApiTest, RefusesWhatNamesNoWorker) {
  Register(MakeWorker("a"));
  EXPECT_TRUE(absl::IsInvalidArgument(api_->DrainWorkers({}, false).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(api_->DrainWorkers({.names = {"a"}, .all = true}, false).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(api_->ResumeWorkers({}).status()));
  const absl::Status unknown = api_->DrainWorkers({.names = {"a", "bb"}}, false).status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_EQ(unknown.message(),
            "worker 'bb': expected one that has registered since the server started, such as a");
  EXPECT_FALSE(api_->ListWorkers().front().drained) << "nothing is done by halves";
}

}  // namespace
}  // namespace hpo::server
