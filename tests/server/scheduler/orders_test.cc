// What people order: a study pauses, stops, goes on; a trial is stopped or cancelled.
#include <gmock/gmock.h>

#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OrdersTest : public SchedulerFixture {
 protected:
  StudyApi Api() { return StudyApi(*scheduler_); }
  absl::Status Order(StudyOrder order, bool stop_running_trials = false) {
    return Api().OrderStudy("plain", order, stop_running_trials).status();
  }
  absl::Status StopTrial(int64_t number) {
    return Api().StopTrial("plain", TrialNumber{number}, "").status();
  }
  absl::Status CancelTrial(int64_t number) {
    return Api().CancelTrial("plain", TrialNumber{number}, "not this one").status();
  }
  std::string ReasonOf(int64_t number) {
    const TrialRecord record = Load("plain", number);
    EXPECT_EQ(record.trial.state, TrialState::kCancelled);
    const auto* cancelled =
        record.trial.outcome ? std::get_if<Cancelled>(&*record.trial.outcome) : nullptr;
    return cancelled == nullptr ? "" : cancelled->reason;
  }
  // The kinds of the study's events after `sequence`, its own as "study KIND".
  std::vector<std::string> EventsAfter(int64_t sequence) {
    std::vector<std::string> kinds;
    const StudyRuntime& study = **scheduler_->state().studies.Find("plain");
    const auto read = [&](const StudyRows& rows) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(const auto events, rows.events.After(sequence, 1000));
      for (const EventLog::Event& event : events) {
        EXPECT_EQ(event.sequence, ++sequence);
        kinds.push_back((event.trial == kNoTrial ? "study " : "") + event.kind);
      }
      return absl::OkStatus();
    };
    EXPECT_TRUE(ReadRows(*scheduler_->state().store, study, read).ok());
    return kinds;
  }
};

TEST_F(OrdersTest, APausedStudyHandsOutNothingUntilItGoesOn) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef running = MustAcquire(session).lease;
  ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
  ASSERT_TRUE(Order(StudyOrder::kPause).ok());
  EXPECT_EQ(Beat(running), Directive::kContinue) << "what runs goes on";
  Complete(running, 0.5);
  for (int start = 0; start < 2; ++start) {
    const AcquireResult waits = Acquire(Register(MakeWorker("a")));
    EXPECT_FALSE(waits.assignment.has_value());
    EXPECT_FALSE(waits.all_studies_finished) << "workers wait";
    EXPECT_EQ(waits.waiting_for, "study plain: paused");
    EXPECT_EQ(Status("plain").order, StudyOrder::kPause);
    EXPECT_EQ(Status("plain").waiting_for, "paused; to go on: hpo study resume plain");
    Restart();
  }
  ASSERT_TRUE(Order(StudyOrder::kRun).ok());
  EXPECT_EQ(MustAcquire(Register(MakeWorker("a"))).lease.trial.number, TrialNumber{1});
}

TEST_F(OrdersTest, AStoppedStudyIsFinishedOnceNothingRuns) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef running = MustAcquire(session).lease;
  ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
  ASSERT_TRUE(Order(StudyOrder::kStop).ok());
  EXPECT_FALSE(Status("plain").finished);
  EXPECT_EQ(Beat(running), Directive::kContinue);
  EXPECT_TRUE(absl::IsFailedPrecondition(Api().EnqueueTrial("plain", {}, "").status()));
  Complete(running, 0.5);
  EXPECT_TRUE(Status("plain").finished);
  EXPECT_TRUE(Acquire(session).all_studies_finished) << "workers leave";
  Restart();
  EXPECT_TRUE(Status("plain").finished);
  EXPECT_EQ(Status("plain").counts.queued, 1);
  ASSERT_TRUE(Order(StudyOrder::kRun).ok());
  EXPECT_EQ(MustAcquire(Register(MakeWorker("a"))).lease.trial.number, TrialNumber{1});
}

TEST_F(OrdersTest, StoppingNowEndsWhatRuns) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_TRUE(absl::IsInvalidArgument(Order(StudyOrder::kPause, true)));
  ASSERT_TRUE(Order(StudyOrder::kStop, true).ok());
  ASSERT_TRUE(Order(StudyOrder::kStop, true).ok()) << "twice is once";
  EXPECT_EQ(Beat(lease), Directive::kCancelled);
  Finish(lease, Cancelled{.reason = "cancelled on the server"});
  EXPECT_EQ(ReasonOf(0), "the study was stopped");
  EXPECT_TRUE(Status("plain").finished);
}

TEST_F(OrdersTest, EveryOrderIsOneEvent) {
  AddStudy(PlainStudy());
  MustAcquire(Register(MakeWorker("a")));
  ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
  const int64_t before = (*scheduler_->state().studies.Find("plain"))->changes.last();
  for (int repeat = 0; repeat < 2; ++repeat) ASSERT_TRUE(Order(StudyOrder::kPause).ok());
  for (int repeat = 0; repeat < 2; ++repeat) ASSERT_TRUE(StopTrial(0).ok());
  ASSERT_TRUE(CancelTrial(1).ok());
  ASSERT_TRUE(Order(StudyOrder::kRun).ok());
  EXPECT_THAT(EventsAfter(before),
              ElementsAre("study PAUSE", "stop_ordered", "finished", "study RUN"));
  const int64_t last = (*scheduler_->state().studies.Find("plain"))->changes.last();
  Restart();
  EXPECT_EQ((*scheduler_->state().studies.Find("plain"))->changes.last(), last);
}

TEST_F(OrdersTest, AStoppedTrialEndsCancelledHoweverItsAttemptEnds) {
  AddStudy(PlainStudy());
  using End = std::function<void(const LeaseRef&)>;
  const End ends[] = {
      [&](const LeaseRef& lease) { Finish(lease, Cancelled{.reason = "on the server"}); },
      [&](const LeaseRef& lease) {
        Finish(lease, Failed{.failure_class = FailureClass::kTrainerKilled});
      },
      [&](const LeaseRef& lease) {
        EXPECT_EQ(
            scheduler_->results()
                .ReleaseTrial(
                    "", {.lease = lease, .reason = ReleaseReason::kPreempted, .note = "drains"})
                .value(),
            TrialState::kCancelled);
      },
      [&](const LeaseRef&) { Pass(3 * kTtl); },
  };
  int64_t number = 0;
  for (const End& end : ends) {
    SCOPED_TRACE(number);
    const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
    ASSERT_TRUE(StopTrial(number).ok());
    EXPECT_EQ(Beat(lease), Directive::kCancelled);
    EXPECT_EQ(scheduler_->results().ReportMeasurements({.lease = lease})->directive,
              Directive::kCancelled);
    end(lease);
    EXPECT_EQ(ReasonOf(number), "stopped by hand");
    ++number;
  }
  EXPECT_EQ(Status("plain").counts.cancelled, 4);
}

TEST_F(OrdersTest, AResultThatCameFirstCounts) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  ASSERT_TRUE(StopTrial(0).ok());
  EXPECT_EQ(Complete(lease, 0.5).state, TrialState::kCompleted);
}

TEST_F(OrdersTest, AStopOutlivesTheServerAndBeatsEveryOtherOrder) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  ASSERT_TRUE(Api().PreemptTrial("plain", TrialNumber{0}).ok());
  ASSERT_TRUE(StopTrial(0).ok());
  Restart();
  EXPECT_EQ(Beat(lease), Directive::kCancelled);
}

TEST_F(OrdersTest, AQueuedTrialIsCancelledAtOnce) {
  AddStudy(PlainStudy());
  ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
  ASSERT_TRUE(CancelTrial(0).ok());
  EXPECT_EQ(ReasonOf(0), "not this one");
  Restart();
  EXPECT_EQ(ReasonOf(0), "not this one");
  EXPECT_EQ(MustAcquire(Register(MakeWorker("a"))).lease.trial.number, TrialNumber{1});
}

TEST_F(OrdersTest, AnOrderForATrialInAnotherStateIsRefused) {
  AddStudy(PlainStudy());
  EXPECT_TRUE(absl::IsNotFound(StopTrial(0)));
  EXPECT_TRUE(absl::IsNotFound(CancelTrial(0)));
  ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
  EXPECT_THAT(StopTrial(0).message(), HasSubstr("expected a running one, got QUEUED"));
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  EXPECT_THAT(CancelTrial(0).message(), HasSubstr("expected a queued one, got RUNNING"));
  Complete(lease, 0.5);
  EXPECT_TRUE(absl::IsFailedPrecondition(StopTrial(0)));
  EXPECT_TRUE(absl::IsFailedPrecondition(CancelTrial(0)));
}

}  // namespace
}  // namespace hpo::server
