// The server dies and comes back on the same database.
#include <filesystem>

#include "server/trials/lease_token.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

class RestartTest : public SchedulerFixture {};

TEST_F(RestartTest, ARunningTrialIsReadoptedBeforeItsWorkerRegistersAgain) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  const int64_t epoch = scheduler_->state().epoch.number;
  Restart();
  EXPECT_EQ(scheduler_->state().epoch.number, epoch + 1);
  const auto beat = scheduler_->sessions().Heartbeat(session, {LeaseBeat{.lease = lease}}, GiB(8));
  ASSERT_TRUE(beat.ok());
  EXPECT_TRUE(beat->register_again);
  EXPECT_EQ(beat->directives.front(), Directive::kContinue);
  EXPECT_TRUE(scheduler_->results()
                  .ReportMeasurements(
                      {.lease = lease, .measurements = {{.step = 1, .epoch = 1, .metrics = {}}}})
                  .ok());
  EXPECT_TRUE(Complete(lease, 0.5).stored);
  EXPECT_FALSE(Complete(lease, 0.5).stored);
  EXPECT_EQ(Status("plain").counts.completed, 1);
}

TEST_F(RestartTest, ARecordedAnswerOutlivesTheServer) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  const TrialOutcome outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""};
  EXPECT_TRUE(Finish(lease, outcome, "tell").stored);
  Restart();
  EXPECT_TRUE(Finish(lease, outcome, "tell").stored) << "the recorded answer, not a second tell";
  EXPECT_EQ(Status("plain").counts.completed, 1);
}

// Defect 13 of issue 21: whoever can read the database, or a copy of it, finishes no trial.
TEST_F(RestartTest, TheDatabaseHoldsNoTokenAndNothingThatItIsMadeFrom) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = Acquire(session, GiB(8), "ask-1").assignment->lease;
  auto database = Database::Open(database_.path(), Database::Access::kReadOnly);
  ASSERT_TRUE(database.ok());
  Statement stored = (*database)->Prepare("SELECT token FROM attempt");
  ASSERT_TRUE(stored.Next().value());
  EXPECT_EQ(stored.Text(0), HashOfToken(lease.token));
  Statement ids = (*database)->Prepare("SELECT COUNT(*) FROM idempotency WHERE request_id = ?1");
  ASSERT_TRUE(ids.Bind("ask-1").Next().value());
  EXPECT_EQ(ids.Int(0), 0);
  LeaseRef stolen = lease;
  stolen.token = stored.Text(0);
  EXPECT_EQ(Beat(stolen), Directive::kLeaseLost);
  EXPECT_EQ(Beat(lease), Directive::kContinue);
}

TEST_F(RestartTest, ARepeatedRequestHasTheSameTokenOfAnotherServerProcess) {
  AddStudy(PlainStudy());
  const LeaseRef lease = Acquire(Register(MakeWorker("a")), GiB(8), "ask-1").assignment->lease;
  Restart();
  const std::string session = Register(MakeWorker("a"));
  EXPECT_EQ(Acquire(session, GiB(8), "ask-1").assignment->lease, lease);
  EXPECT_NE(Acquire(session, GiB(8), "ask-2").assignment->lease.token, lease.token);
}

TEST_F(RestartTest, LeasesGetOneTtlMore) {
  AddStudy(PlainStudy());
  MustAcquire(Register(MakeWorker("a")));
  Restart();
  Pass(2 * kTtl);
  EXPECT_EQ(Load("plain", 0).trial.attempts.front().state, AttemptState::kLeased);
  Pass(kTtl);
  EXPECT_EQ(Load("plain", 0).trial.attempts.front().state, AttemptState::kSuspect);
  Pass(absl::Seconds(5));
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kQueued);
}

TEST_F(RestartTest, AWorkerThatRestartedMeanwhileFreesItsSlot) {
  AddStudy(PlainStudy());
  WorkerFacts facts = MakeWorker("a");
  const LeaseRef lease = MustAcquire(Register(facts)).lease;
  Restart();
  facts.instance_key = "a-2";
  const LeaseRef again = MustAcquire(Register(facts, "a-1")).lease;
  EXPECT_EQ(again.trial, lease.trial);
  EXPECT_EQ(again.attempt, AttemptNumber{2});
}

TEST_F(RestartTest, TheRebuiltHistoryEqualsTheFoldedOne) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  for (int number = 0; number < 6; ++number) {
    const LeaseRef lease = MustAcquire(session).lease;
    const Measurement seen{.step = 5, .epoch = 1, .metrics = {{"score", 0.1 * number}}};
    ASSERT_TRUE(
        scheduler_->results().ReportMeasurements({.lease = lease, .measurements = {seen}}).ok());
    if (number == 2) {
      ASSERT_TRUE(scheduler_->results()
                      .ReleaseTrial("", {.lease = lease, .reason = ReleaseReason::kPreempted})
                      .ok());
    } else if (number != 4) {
      Complete(lease, 0.1 * number);
    }
  }
  const sampler::History before = (*scheduler_->state().studies.Find("plain"))->history();
  EXPECT_GT(before.sequence(), 10);
  Restart();
  EXPECT_EQ((*scheduler_->state().studies.Find("plain"))->history(), before);
}

TEST_F(RestartTest, ALateResultThatDoesNotCountTeachesMemoryWhatTheRowsSay) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial("", {.lease = lease, .reason = ReleaseReason::kPreempted})
                  .ok());
  const Failed crashed{.failure_class = FailureClass::kTrainerCrashed, .message = "late"};
  FinishRequest late{.lease = lease, .outcome = crashed};
  late.measurements = {{.step = 5, .epoch = 1, .metrics = {{"score", 0.5}}}};
  const auto finished = scheduler_->results().FinishTrial("", late);
  ASSERT_TRUE(finished.ok()) << finished.status();
  ASSERT_FALSE(finished->stored);
  const sampler::History before = (*scheduler_->state().studies.Find("plain"))->history();
  EXPECT_EQ(before.trials().at(TrialNumber{0}).intermediate.size(), 1u);
  Restart();
  EXPECT_EQ((*scheduler_->state().studies.Find("plain"))->history(), before);
}

TEST_F(RestartTest, TheBudgetGoesOnWhereItWas) {
  AddStudy(PlainStudy("plain", 2));
  Complete(MustAcquire(Register(MakeWorker("a"))).lease, 0.5);
  Restart();
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef second = MustAcquire(session).lease;
  EXPECT_EQ(second.trial.number, TrialNumber{1});
  EXPECT_FALSE(Acquire(session).assignment);
}

// kill -9 leaves what was written so far: the files as they lie, write-ahead log included.
TEST_F(RestartTest, ACopyOfTheFilesTakenMidwayOpens) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef told = MustAcquire(session).lease;
  Complete(told, 0.5);
  const LeaseRef running = MustAcquire(session).lease;
  TemporaryDatabase copy;
  std::filesystem::copy_file(database_.path(), copy.path());
  std::filesystem::copy_file(database_.path() + "-wal", copy.path() + "-wal");
  Complete(running, 0.9);

  auto store = Store::Open(copy.path());
  ASSERT_TRUE(store.ok()) << store.status();
  SchedulerOptions options;
  options.tick_interval = absl::ZeroDuration();
  auto survivor = TrialScheduler::Create(*std::move(store), clock_, options);
  ASSERT_TRUE(survivor.ok()) << survivor.status();
  const auto status = DescribeStudy((*survivor)->state(), "plain");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->counts.completed, 1);
  EXPECT_EQ(status->counts.running, 1);
  const auto finished = (*survivor)->results().FinishTrial(
      "", FinishRequest{.lease = running,
                        .outcome = Completed{.metrics = {{"score", 0.9}}, .model_path = ""},
                        .memory = {},
                        .final_plan = {},
                        .measurements = {}});
  ASSERT_TRUE(finished.ok());
  EXPECT_TRUE(finished->stored);
}

TEST_F(RestartTest, ASecondServerOnTheFileIsRefused) {
  const auto second = Store::Open(database_.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  Stop();
  EXPECT_TRUE(Store::Open(database_.path()).ok());
}

}  // namespace
}  // namespace hpo::server
