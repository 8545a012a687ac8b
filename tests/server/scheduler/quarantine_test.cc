// Rows that cannot be read are named and left alone; everything else goes on.
#include "gmock/gmock.h"
#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QuarantineTest : public SchedulerFixture {
 protected:
  // What a damaged disk, or an older server, left.
  void Damage(const std::string& sql) {
    auto database = Database::Open(database_.path(), Database::Access::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status done = (*database)->Execute(sql);
    ASSERT_TRUE(done.ok()) << done;
  }

  FinishRequest WithMemory(const LeaseRef& lease, MemoryReport memory) {
    return FinishRequest{.lease = lease,
                         .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""},
                         .memory = std::move(memory),
                         .final_plan = {},
                         .measurements = {}};
  }
};

TEST_F(QuarantineTest, AResultThatCouldNotBeReadAgainIsRefused) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef first = MustAcquire(session).lease;
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial("", {.lease = first, .reason = ReleaseReason::kPreempted})
                  .ok());
  const LeaseRef second = MustAcquire(session).lease;
  ASSERT_TRUE(Complete(second, 0.5).stored);
  const absl::Status late =
      scheduler_->results().FinishTrial("", WithMemory(first, {.live_peak = Bytes{-1}})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(late)) << late;
  EXPECT_THAT(late.message(), HasSubstr("memory"));
  const LeaseRef third = MustAcquire(session).lease;
  EXPECT_TRUE(absl::IsInvalidArgument(
      scheduler_->results().FinishTrial("", WithMemory(third, {.live_peak = Bytes{-1}})).status()));
  Restart();
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kCompleted);
  EXPECT_THAT(Status("plain").unreadable, IsEmpty());
}

TEST_F(QuarantineTest, AnUnreadableTrialIsNamedAndTheRestGoesOn) {
  AddStudy(PlainStudy("plain", 4));
  std::string session = Register(MakeWorker("a"));
  for (int i = 0; i < 3; ++i) Complete(MustAcquire(session).lease, 0.1 * i);
  const LeaseRef running = MustAcquire(session).lease;
  Stop();
  Damage("UPDATE trial SET params = '{' WHERE number = 1");
  Damage("UPDATE trial SET state = 'SLEEPING' WHERE number = 2");
  Start();
  StudyStatus status = Status("plain");
  EXPECT_THAT(status.unreadable,
              AllOf(HasSubstr("trial #1: column params"), HasSubstr("trial #2: expected a known")));
  EXPECT_EQ(status.best_trial, TrialNumber{0});
  EXPECT_FALSE(status.finished) << "trial 3 still runs";

  const StudyApi api(*scheduler_);
  const auto page = api.queries().ListTrials("plain", {});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->trials.size(), 4u);
  EXPECT_EQ(page->trials[1].state, TrialState::kFailed);
  EXPECT_THAT(std::get<Failed>(*page->trials[1].outcome).message, HasSubstr("cannot be read"));
  const auto shown = api.queries().GetTrial("plain", TrialNumber{2});
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_THAT(std::get<Failed>(*shown->trial.outcome).message, HasSubstr("SLEEPING"));
  EXPECT_TRUE(api.queries().ListBestTrials("plain", 10).ok());

  EXPECT_EQ(Beat(running), Directive::kContinue);
  EXPECT_TRUE(Complete(running, 0.9).stored);
  EXPECT_TRUE(Status("plain").finished);
}

TEST_F(QuarantineTest, OneStudysRowsDoNotKeepTheLeasesOfOthers) {
  AddStudy(PlainStudy("first"));
  const LeaseRef broken = MustAcquire(Register(MakeWorker("a"))).lease;
  AddStudy(PlainStudy("second"));
  const LeaseRef sound = MustAcquire(Register(MakeWorker("b"))).lease;
  ASSERT_EQ(sound.trial.study, "second");
  Damage("UPDATE attempt SET plan = '{' WHERE study_id = 1");
  Pass(3 * kTtl);
  EXPECT_EQ(Load("second", 0).trial.state, TrialState::kQueued) << "its worker is gone";
  EXPECT_THAT(Status("first").unreadable, HasSubstr("trial #0: column plan"));
  EXPECT_EQ(Beat(broken), Directive::kLeaseLost);
  const absl::Status told = scheduler_->results().FinishTrial("", WithMemory(broken, {})).status();
  EXPECT_TRUE(absl::IsDataLoss(told)) << told;
}

TEST_F(QuarantineTest, AnUnreadableQueuedTrialIsPassedOver) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(scheduler_->enqueuer().EnqueueTrial("plain", EnqueueRequest{}, "").ok());
  }
  Damage("UPDATE trial SET params = '{' WHERE number = 0");
  EXPECT_EQ(MustAcquire(session).lease.trial.number, TrialNumber{1});
  EXPECT_EQ(MustAcquire(session).lease.trial.number, TrialNumber{2});
  EXPECT_THAT(Status("plain").unreadable, HasSubstr("trial #0"));
}

TEST_F(QuarantineTest, AnUnreadableStudyIsListedAndTheOthersStart) {
  AddStudy(PlainStudy("broken"));
  AddStudy(PlainStudy("sound"));
  Stop();
  Damage("UPDATE study SET spec = '{}' WHERE name = 'broken'");
  Start();
  EXPECT_THAT(scheduler_->state().studies.Names(), Contains("broken"));
  EXPECT_THAT(Status("broken").unreadable, HasSubstr("cannot be read"));
  EXPECT_TRUE(absl::IsDataLoss(
      scheduler_->commands().CreateStudy(PlainStudy("broken"), false, "").status()));
  EXPECT_EQ(MustAcquire(Register(MakeWorker("a"))).lease.trial.study, "sound");
  EXPECT_TRUE(scheduler_->sweeper().Tick().ok());
}

}  // namespace
}  // namespace hpo::server
