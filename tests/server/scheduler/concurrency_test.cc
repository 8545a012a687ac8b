// Many workers at once, and calls that wait. Meaningful under ThreadSanitizer too.
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kLong = absl::Seconds(50);

class ConcurrencyTest : public SchedulerFixture {};

TEST_F(ConcurrencyTest, ManyWorkersUseUpTheBudgetExactly) {
  constexpr int kWorkers = 8;
  constexpr int64_t kTrials = 100;
  AddStudy(EndlessStudy("plain", kTrials));
  absl::Mutex mutex;
  std::multiset<int64_t> numbers;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      const std::string session = Register(MakeWorker(absl::StrCat("w", worker)));
      while (const auto assignment = Acquire(session).assignment) {
        const LeaseRef& lease = assignment->lease;
        const Measurement seen{.step = 1, .epoch = 1, .metrics = {{"score", 0.1}}};
        EXPECT_TRUE(scheduler_->results()
                        .ReportMeasurements({.lease = lease, .measurements = {seen}})
                        .ok());
        EXPECT_EQ(Beat(lease), Directive::kContinue);
        EXPECT_TRUE(Complete(lease, 0.5).stored);
        absl::MutexLock lock(&mutex);
        numbers.insert(lease.trial.number.value);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(numbers.size(), static_cast<size_t>(kTrials));
  EXPECT_EQ(std::set<int64_t>(numbers.begin(), numbers.end()).size(), numbers.size());
  EXPECT_EQ(Status("plain").counts, (TrialCounts{.completed = kTrials}));
}

// What they are ordered by changes meanwhile. Meaningful under AddressSanitizer.
TEST_F(ConcurrencyTest, ManyWorkersAskForTrialsOfManyStudies) {
  constexpr int kWorkers = 8;
  constexpr int kTrialsEach = 60;
  for (int study = 0; study < 30; ++study) AddStudy(PlainStudy(absl::StrCat("study", study), 100));
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      const std::string session = Register(MakeWorker(absl::StrCat("w", worker)));
      for (int i = 0; i < kTrialsEach; ++i) Complete(MustAcquire(session).lease, 0.5);
    });
  }
  for (std::thread& worker : workers) worker.join();
  int64_t num_completed = 0;
  for (int study = 0; study < 30; ++study) {
    num_completed += Status(absl::StrCat("study", study)).counts.completed;
  }
  EXPECT_EQ(num_completed, kWorkers * kTrialsEach);
}

TEST_F(ConcurrencyTest, AWaitingWorkerIsWokenByANewStudy) {
  const std::string session = Register(MakeWorker("a"));
  absl::StatusOr<AcquireResult> acquired = AcquireResult{};
  std::thread waiting([&] {
    acquired = scheduler_->dispatcher().AcquireTrial(session, "", kLong, GiB(8), nullptr);
  });
  AddStudy(PlainStudy());
  waiting.join();
  ASSERT_TRUE(acquired.ok());
  EXPECT_TRUE(acquired->assignment.has_value());
}

TEST_F(ConcurrencyTest, AWaitingWorkerIsWokenByARequeue) {
  AddStudy(PlainStudy("plain", 1));
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  const std::string other = Register(MakeWorker("b"));
  absl::StatusOr<AcquireResult> acquired = AcquireResult{};
  std::thread waiting(
      [&] { acquired = scheduler_->dispatcher().AcquireTrial(other, "", kLong, GiB(8), nullptr); });
  EXPECT_TRUE(scheduler_->results()
                  .ReleaseTrial("", {.lease = lease, .reason = ReleaseReason::kPreempted})
                  .ok());
  waiting.join();
  ASSERT_TRUE(acquired.ok());
  ASSERT_TRUE(acquired->assignment.has_value());
  EXPECT_EQ(acquired->assignment->lease.attempt, AttemptNumber{2});
}

TEST_F(ConcurrencyTest, AWaitingWorkerHearsThatEverythingIsFinished) {
  AddStudy(PlainStudy("plain", 1));
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  const std::string other = Register(MakeWorker("b"));
  absl::StatusOr<AcquireResult> acquired = AcquireResult{};
  absl::Notification asking;
  std::thread waiting([&] {
    acquired = scheduler_->dispatcher().AcquireTrial(other, "", kLong, GiB(8), [&] {
      if (!asking.HasBeenNotified()) asking.Notify();
      return false;
    });
  });
  asking.WaitForNotification();
  Complete(lease, 0.5);
  waiting.join();
  ASSERT_TRUE(acquired.ok());
  EXPECT_TRUE(acquired->all_studies_finished);
}

TEST_F(ConcurrencyTest, AWaitOfAReplacedProcessGetsNothing) {
  WorkerFacts facts = MakeWorker("a");
  const std::string session = Register(facts);
  absl::StatusOr<AcquireResult> acquired = AcquireResult{};
  absl::Notification asking;
  std::thread waiting([&] {
    acquired = scheduler_->dispatcher().AcquireTrial(session, "", kLong, GiB(8), [&] {
      if (!asking.HasBeenNotified()) asking.Notify();
      return false;
    });
  });
  asking.WaitForNotification();
  facts.instance_key = "a-2";
  Register(facts, "a-1");
  waiting.join();
  EXPECT_TRUE(absl::IsNotFound(acquired.status()));
}

TEST_F(ConcurrencyTest, DrainAndCancellationEndAWait) {
  AddStudy(PlainStudy("plain", 0));
  ASSERT_TRUE(scheduler_->enqueuer().EnqueueTrial("plain", {.demonstration = true}, "").ok());
  const LeaseRef held = MustAcquire(Register(MakeWorker("a"))).lease;
  const std::string other = Register(MakeWorker("b"));
  const auto cancelled =
      scheduler_->dispatcher().AcquireTrial(other, "", kLong, GiB(8), [] { return true; });
  ASSERT_TRUE(cancelled.ok());
  EXPECT_FALSE(cancelled->assignment || cancelled->draining);
  absl::StatusOr<AcquireResult> drained = AcquireResult{};
  std::thread waiting(
      [&] { drained = scheduler_->dispatcher().AcquireTrial(other, "", kLong, GiB(8), nullptr); });
  scheduler_->state().work.Drain();
  waiting.join();
  ASSERT_TRUE(drained.ok());
  EXPECT_TRUE(drained->draining);
  EXPECT_EQ(Beat(held), Directive::kContinue);
}

}  // namespace
}  // namespace hpo::server
