// Failures end a study: when, what is told, and how it goes on.
#include <gmock/gmock.h>

#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

class StudyFailureTest : public SchedulerFixture {
 protected:
  void Fail(const LeaseRef& lease, const std::string& message = "ValueError: bad") {
    EXPECT_EQ(
        Finish(lease, Failed{.failure_class = FailureClass::kBadConfiguration, .message = message})
            .state,
        TrialState::kFailed);
  }

  // Fails whatever `session` is given; how many there were.
  int FailAll(const std::string& session) {
    int num_failed = 0;
    for (;;) {
      const AcquireResult acquired = Acquire(session);
      if (!acquired.assignment) return num_failed;
      Fail(acquired.assignment->lease, absl::StrCat("failure ", num_failed++));
    }
  }

  absl::Status Order(StudyOrder order) {
    return StudyApi(*scheduler_).OrderStudy("plain", order, false).status();
  }
};

TEST_F(StudyFailureTest, AProgramThatAlwaysRaisesCostsFiveTrials) {
  AddStudy(PlainStudy("plain", 100));
  const std::string session = Register(MakeWorker("a"));
  EXPECT_EQ(FailAll(session), 5) << "always_raising_trials";
  for (int start = 0; start < 2; ++start) {
    const StudyStatus status = Status("plain");
    EXPECT_TRUE(status.finished);
    EXPECT_EQ(status.failure,
              "5 trials failed before one completed or was pruned (budget.failures_in_a_row: 5); "
              "the last, trial #4, says:\nfailure 4");
    EXPECT_THAT(status.waiting_for, HasSubstr("to go on: hpo study resume plain"));
    const AcquireResult over = Acquire(Register(MakeWorker("a")));
    EXPECT_TRUE(over.all_studies_finished);
    ASSERT_EQ(over.finished.size(), 1u) << "its worker can say why";
    EXPECT_EQ(over.finished[0].study, "plain");
    EXPECT_TRUE(over.finished[0].failed);
    EXPECT_THAT(over.finished[0].why, HasSubstr("5 trials failed before one completed"));
    Restart();
  }
}

TEST_F(StudyFailureTest, TheLimitsMayBeChangedWhileItRuns) {
  AddStudy(PlainStudy("plain", 100));
  ASSERT_TRUE(scheduler_->commands()
                  .UpdateStudy("plain", {.failures_in_a_row = 2, .failed_share = 0.5}, "")
                  .ok());
  Restart();
  const std::string session = Register(MakeWorker("a"));
  EXPECT_EQ(FailAll(session), 2);
  ASSERT_TRUE(scheduler_->commands()
                  .UpdateStudy("plain", {.failures_in_a_row = 0, .failed_share = 1.0}, "")
                  .ok());
  EXPECT_EQ(Status("plain").spec.budget.failed_share, std::nullopt);
  EXPECT_EQ(FailAll(session), 98) << "no limit any more";
}

TEST_F(StudyFailureTest, WhatRunsInParallelMayShowThatTheProgramWorks) {
  AddStudy(PlainStudy());
  const std::string one = Register(MakeWorker("a"));
  const LeaseRef parallel = MustAcquire(Register(MakeWorker("b"))).lease;
  EXPECT_EQ(FailAll(one), 5);
  EXPECT_FALSE(Status("plain").finished) << "one runs";
  Complete(parallel, 0.5);
  EXPECT_EQ(Status("plain").failure, "");
  EXPECT_FALSE(Status("plain").finished);
  Fail(MustAcquire(one).lease);
  MustAcquire(one);
}

TEST_F(StudyFailureTest, WhatIsQueuedWaitsForAResume) {
  AddStudy(PlainStudy());
  StudyApi api(*scheduler_);
  const std::string session = Register(MakeWorker("a"));
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(api.EnqueueTrial("plain", {}, "").ok());
  EXPECT_EQ(FailAll(session), 5);
  EXPECT_TRUE(Status("plain").finished);
  EXPECT_EQ(Status("plain").counts.queued, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(api.EnqueueTrial("plain", {}, "").status()));

  ASSERT_TRUE(Order(StudyOrder::kRun).ok());
  EXPECT_EQ(Status("plain").failure, "");
  Restart();
  EXPECT_EQ(Status("plain").failure, "") << "the resume outlives the server";
  const std::string again = Register(MakeWorker("a"));
  EXPECT_EQ(MustAcquire(again).lease.trial.number, TrialNumber{5});
}

TEST_F(StudyFailureTest, AfterAResumeFailuresAreCountedAnew) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(FailAll(session), 5) << round;
    ASSERT_TRUE(Order(StudyOrder::kRun).ok());
  }
}

TEST_F(StudyFailureTest, TheFileMayAllowMore) {
  StudySpec spec = PlainStudy();
  spec.budget.failures_in_a_row = 2;
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  EXPECT_EQ(FailAll(session), 2);
  spec.budget.failures_in_a_row = 6;
  AddStudy(spec);
  EXPECT_EQ(Status("plain").failure, "");
  EXPECT_EQ(FailAll(session), 4);
}

TEST_F(StudyFailureTest, AShareOfFailuresEndsTheStudyWhereItIsAskedFor) {
  StudySpec spec = PlainStudy();
  spec.budget.failed_share = 0.5;
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  Complete(MustAcquire(session).lease, 0.5);
  EXPECT_EQ(FailAll(session), 9);
  EXPECT_THAT(Status("plain").failure, HasSubstr("9 of 10 trials failed"));
}

TEST_F(StudyFailureTest, AMisspeltObjectiveEndsTheStudyWithTheNamesThatCame) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  int num_trials = 0;
  for (AcquireResult next = Acquire(session); next.assignment; next = Acquire(session)) {
    Finish(next.assignment->lease, Completed{.metrics = {{"Score", 0.5}}});
    ++num_trials;
  }
  EXPECT_EQ(num_trials, 5);
  EXPECT_THAT(Status("plain").failure,
              HasSubstr("expected the study's objective score, got Score"));
}

}  // namespace
}  // namespace hpo::server
