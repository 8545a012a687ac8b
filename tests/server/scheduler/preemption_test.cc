// Orders that reach a running trial by its heartbeat: give it back, or end at the time limit.
#include <gmock/gmock.h>

#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

class PreemptionTest : public SchedulerFixture {
 protected:
  absl::Status Preempt(int64_t number) {
    return StudyApi(*scheduler_).PreemptTrial("plain", TrialNumber{number}).status();
  }

  void AddLimitedStudy(absl::Duration limit) {
    StudySpec spec = PlainStudy();
    spec.budget.trial_wall_clock = limit;
    AddStudy(spec);
  }

  // Moves the clock with the lease kept alive; the last beat's answer.
  Directive Run(const LeaseRef& lease, absl::Duration time) {
    Directive directive = Directive::kContinue;
    for (absl::Duration passed; passed < time; passed += absl::Seconds(5)) {
      clock_.Advance(absl::Seconds(5));
      EXPECT_TRUE(scheduler_->sweeper().Tick().ok());
      directive = Beat(lease);
    }
    return directive;
  }
};

TEST_F(PreemptionTest, AnOrderReachesTheWorkerAndTheTrialIsQueuedAgain) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_EQ(Beat(lease), Directive::kContinue);
  ASSERT_TRUE(Preempt(0).ok());
  ASSERT_TRUE(Preempt(0).ok()) << "twice is once";
  EXPECT_EQ(Beat(lease), Directive::kPreempted);
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kRunning) << "until the worker gives it back";
  ASSERT_EQ(scheduler_->results()
                .ReleaseTrial(
                    "", {.lease = lease, .reason = ReleaseReason::kPreempted, .note = "ordered"})
                .value(),
            TrialState::kQueued);
  EXPECT_EQ(Load("plain", 0).retries.preemptions, 1);
  const LeaseRef second = MustAcquire(session).lease;
  EXPECT_EQ(second.trial.number, TrialNumber{0});
  EXPECT_EQ(second.attempt, AttemptNumber{2});
  EXPECT_EQ(Beat(second), Directive::kContinue) << "the order was for the first attempt";
}

TEST_F(PreemptionTest, AnOrderOutlivesTheServerButNotItsAttempt) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  ASSERT_TRUE(Preempt(0).ok());
  Restart();
  EXPECT_EQ(Beat(lease), Directive::kPreempted);
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial(
                      "", {.lease = lease, .reason = ReleaseReason::kPreempted, .note = "ordered"})
                  .ok());
  const LeaseRef second = MustAcquire(Register(MakeWorker("a"))).lease;
  Restart();
  EXPECT_EQ(Beat(second), Directive::kContinue);
}

TEST_F(PreemptionTest, AnOrderIsOneEvent) {
  AddStudy(PlainStudy());
  MustAcquire(Register(MakeWorker("a")));
  const int64_t before = (*scheduler_->state().studies.Find("plain"))->changes.last();
  ASSERT_TRUE(Preempt(0).ok());
  ASSERT_TRUE(Preempt(0).ok());
  EXPECT_EQ((*scheduler_->state().studies.Find("plain"))->changes.last(), before + 1);
}

TEST_F(PreemptionTest, OnlyARunningTrialCanBePreempted) {
  AddStudy(PlainStudy());
  EXPECT_TRUE(absl::IsNotFound(Preempt(0)));
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  Complete(lease, 0.5);
  const absl::Status ended = Preempt(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(ended));
  EXPECT_THAT(std::string(ended.message()),
              HasSubstr("trial plain #0: expected a running one, got COMPLETED"));
}

TEST_F(PreemptionTest, AStopBeatsAnOrder) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  ASSERT_TRUE(Preempt(0).ok());
  const Measurement bad{.step = 1, .metrics = {{"score", -0.9}}};
  ASSERT_TRUE(
      scheduler_->results().ReportMeasurements({.lease = lease, .measurements = {bad}}).ok());
  EXPECT_EQ(Beat(lease), Directive::kStopPruned);
}

TEST_F(PreemptionTest, ATrialIsPrunedAtItsTimeLimit) {
  AddLimitedStudy(absl::Seconds(100));
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(Run(lease, absl::Seconds(85)), Directive::kContinue);
  EXPECT_EQ(Run(lease, absl::Seconds(5)), Directive::kTimeLimit) << "one beat of 10 s ahead";
  const auto report = scheduler_->results().ReportMeasurements({.lease = lease});
  EXPECT_TRUE(report->should_stop);
  EXPECT_EQ(report->why, "the trial has used its 1m40s");
  // Stopped by a heartbeat, the worker names nobody.
  Finish(lease, StoppedByPruner{.pruner = "server", .step = 7, .metrics = {{"score", 0.4}}});
  const TrialRecord record = Load("plain", 0);
  EXPECT_EQ(record.trial.state, TrialState::kPruned);
  EXPECT_EQ(std::get<StoppedByPruner>(*record.trial.outcome).pruner, "time limit");
  EXPECT_EQ(std::get<StoppedByPruner>(*record.trial.outcome).step, 7);
}

TEST_F(PreemptionTest, AShortTimeLimitLeavesTheTrialItsTime) {
  AddLimitedStudy(absl::Seconds(8));  // less than the beat of 10 s
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(Run(lease, absl::Seconds(5)), Directive::kContinue);
  EXPECT_EQ(Run(lease, absl::Seconds(3)), Directive::kTimeLimit);
}

TEST_F(PreemptionTest, TheTimeLimitIsOfAllAttemptsTogetherAndOutlivesTheServer) {
  AddLimitedStudy(absl::Seconds(100));
  const LeaseRef first = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(Run(first, absl::Seconds(60)), Directive::kContinue);
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial("", {.lease = first, .reason = ReleaseReason::kPreempted})
                  .ok());
  Pass(absl::Seconds(300));  // waiting costs nothing
  const LeaseRef second = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(Run(second, absl::Seconds(20)), Directive::kContinue);
  Restart();
  EXPECT_EQ(Run(second, absl::Seconds(5)), Directive::kContinue);
  EXPECT_EQ(Run(second, absl::Seconds(5)), Directive::kTimeLimit);
}

TEST_F(PreemptionTest, TheTimeLimitIsByAClockThatDoesNotJump) {
  AddLimitedStudy(absl::Seconds(200));
  const LeaseRef first = MustAcquire(Register(MakeWorker("a"))).lease;
  clock_.JumpWallClock(absl::Hours(9));
  EXPECT_EQ(Run(first, absl::Seconds(60)), Directive::kContinue);
  clock_.JumpWallClock(-absl::Hours(18));
  EXPECT_EQ(Run(first, absl::Seconds(60)), Directive::kContinue);
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial("", {.lease = first, .reason = ReleaseReason::kPreempted})
                  .ok());
  const LeaseRef second = MustAcquire(Register(MakeWorker("a"))).lease;
  clock_.JumpWallClock(absl::Hours(48));
  Restart();
  clock_.JumpWallClock(-absl::Hours(48));
  EXPECT_EQ(Run(second, absl::Seconds(65)), Directive::kContinue) << "185 of 200 s";
  EXPECT_EQ(Run(second, absl::Seconds(10)), Directive::kTimeLimit) << "one beat of 10 s ahead";
}

TEST_F(PreemptionTest, TheTimeThatAServerIsAwayCountsForNoTrial) {
  AddLimitedStudy(absl::Seconds(100));
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(Run(lease, absl::Seconds(50)), Directive::kContinue);
  Stop();
  clock_.Advance(absl::Hours(1));
  Start();
  EXPECT_EQ(Run(lease, absl::Seconds(35)), Directive::kContinue);
  EXPECT_EQ(Run(lease, absl::Seconds(5)), Directive::kTimeLimit);
}

TEST_F(PreemptionTest, WithoutALimitNothingEnds) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_EQ(Run(lease, absl::Hours(1)), Directive::kContinue);
}

}  // namespace
}  // namespace hpo::server
