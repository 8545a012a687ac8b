// What is said to those who wait for trials that other workers hold.
#include "server/studies/held_trials.h"

#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HeldTrialsTest : public SchedulerFixture {
 protected:
  void Beat(const std::string& session, const LeaseRef& lease) {
    ASSERT_TRUE(
        scheduler_->sessions().Heartbeat(session, {LeaseBeat{.lease = lease}}, GiB(8)).ok());
  }
};

TEST_F(HeldTrialsTest, ABudgetThatIsHandedOutSaysWhatRunsAndWhere) {
  AddStudy(PlainStudy("plain", 6));
  const std::string a = Register(MakeWorker("a"));
  MustAcquire(a);
  const std::string b = Register(MakeWorker("b"));
  for (int i = 0; i < 5; ++i) MustAcquire(b);
  EXPECT_EQ(Acquire(a).waiting_for,
            "study plain: the rest of its budget is handed out, and this worker takes what comes "
            "back; running: trial #0 on this worker, trial #1 on b, trial #2 on b and 3 more");
  EXPECT_EQ(Status("plain").waiting_for, "") << "nothing is wrong";
}

TEST_F(HeldTrialsTest, ASilentWorkerIsNamedWithTheSecondsThatAreLeft) {
  AddStudy(PlainStudy("plain", 2));
  const std::string waiting = Register(MakeWorker("waiting"));
  MustAcquire(Register(MakeWorker("silent")));
  const std::string living = Register(MakeWorker("living"));
  const LeaseRef kept = MustAcquire(living).lease;
  clock_.Advance(absl::Seconds(21));
  Beat(living, kept);
  Beat(waiting, {});
  EXPECT_EQ(Acquire(waiting).waiting_for,
            "study plain: the rest of its budget is handed out, and this worker takes what comes "
            "back; running: trial #1 on living; trial #0: its worker silent has not been heard of "
            "for 21 s; the trial is queued again in 99 s");
  EXPECT_EQ(Status("plain").waiting_for,
            "trial #0: its worker silent has not been heard of for 20 s; the trial is queued again "
            "in 90 s")
      << "in steps, as a log has a line for each";
  clock_.Advance(absl::Seconds(99));
  Beat(living, kept);
  Beat(waiting, {});
  EXPECT_THAT(Acquire(waiting).waiting_for, HasSubstr("queued again in 0 s"));
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
  EXPECT_EQ(MustAcquire(waiting).lease.trial.number, TrialNumber{0}) << "as was said";
}

TEST_F(HeldTrialsTest, AWorkerThatClosedItsConnectionIsNamed) {
  AddStudy(PlainStudy("plain", 1));
  const std::string waiting = Register(MakeWorker("waiting"));
  const std::string gone = Register(MakeWorker("gone"));
  MustAcquire(gone);
  ASSERT_TRUE(scheduler_->state().workers.Attend(gone).ok());
  EXPECT_THAT(Acquire(waiting).waiting_for, Not(HasSubstr("connection")));
  scheduler_->state().workers.StopAttending(gone);
  clock_.Advance(absl::Seconds(4));
  EXPECT_THAT(Acquire(waiting).waiting_for,
              HasSubstr("trial #0: its worker gone closed its connection 4 s ago; the trial is "
                        "queued again in 11 s"));
  clock_.Advance(absl::Seconds(12));
  ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
  EXPECT_EQ(MustAcquire(waiting).lease.trial.number, TrialNumber{0}) << "as was said";
}

}  // namespace
}  // namespace hpo::server
