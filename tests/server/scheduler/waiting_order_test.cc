// Which of the trials that wait a free card takes, where the cards are of several sizes.
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

constexpr Bytes kSmallCard = GiB(8);
constexpr Bytes kMedium = GiB(24);
constexpr Bytes kLargeCard = GiB(80);

class WaitingOrderTest : public SchedulerFixture {
 protected:
  // A trainer whose trials need a GiB for each row, which is known from four runs.
  void LearnNeeds() {
    const std::string teacher = Register(MakeWorker("teacher", kLargeCard));
    for (const int64_t rows : {1, 8, 24, 64}) {
      Enqueue(rows);
      const Assignment given = MustAcquire(teacher, kLargeCard);
      FinishRequest request{.lease = given.lease,
                            .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""},
                            .memory = {.live_peak = GiB(rows), .limit = given.task.limit},
                            .final_plan = {},
                            .measurements = {}};
      ASSERT_TRUE(scheduler_->results().FinishTrial("", request).ok());
    }
    Pass(2 * kTtl + absl::Seconds(5));  // the teacher is gone
  }

  TrialNumber Enqueue(int64_t rows, const std::string& study = "plain") {
    const auto number =
        scheduler_->enqueuer().EnqueueTrial(study, {.params = {{"train.batch_size", rows}}}, "");
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(TrialNumber{-1});
  }

  TrialNumber Next(const std::string& session, Bytes capacity) {
    return MustAcquire(session, capacity).lease.trial.number;
  }
};

TEST_F(WaitingOrderTest, ACardTakesFirstWhatTheFewestSmallerOnesCanRun) {
  AddStudy(PlainStudy());
  LearnNeeds();
  Register(MakeWorker("small", kSmallCard));
  const std::string medium = Register(MakeWorker("medium", kMedium));
  const std::string large = Register(MakeWorker("large", kLargeCard));
  const TrialNumber for_all = Enqueue(2);
  const TrialNumber for_medium = Enqueue(12);
  const TrialNumber also_for_medium = Enqueue(13);
  const TrialNumber for_large = Enqueue(48);
  EXPECT_EQ(Next(large, kLargeCard), for_large);
  EXPECT_EQ(Next(medium, kMedium), for_medium) << "equals by number";
  EXPECT_EQ(Next(large, kLargeCard), also_for_medium);
  EXPECT_EQ(Next(large, kLargeCard), for_all) << "no card is left idle";
}

TEST_F(WaitingOrderTest, TheSmallCardTakesWhatWasPassedOver) {
  AddStudy(PlainStudy());
  LearnNeeds();
  const std::string small = Register(MakeWorker("small", kSmallCard));
  const std::string large = Register(MakeWorker("large", kLargeCard));
  const TrialNumber for_all = Enqueue(2);
  const TrialNumber for_large = Enqueue(48);
  EXPECT_EQ(Next(large, kLargeCard), for_large);
  EXPECT_EQ(Next(small, kSmallCard), for_all) << "before anything new";
}

TEST_F(WaitingOrderTest, OnlyCardsThatAreThereCount) {
  AddStudy(PlainStudy());
  LearnNeeds();
  Register(MakeWorker("small", kSmallCard));
  const std::string large = Register(MakeWorker("large", kLargeCard));
  Pass(2 * kTtl + absl::Seconds(5), {{large, kLargeCard}});
  const TrialNumber first = Enqueue(2);
  const TrialNumber second = Enqueue(48);
  EXPECT_EQ(Next(large, kLargeCard), first);
  EXPECT_EQ(Next(large, kLargeCard), second);
}

TEST_F(WaitingOrderTest, ASmallCardWithoutTheModelCountsForNothing) {
  AddStudy(BertStudy());
  WorkerFacts without = MakeBertWorker("small", kSmallCard);
  without.models.front().name = "absent";
  const std::string large = Register(MakeBertWorker("large", kLargeCard));
  Register(without);
  const auto enqueue = [&](const char* model) {
    return *scheduler_->enqueuer().EnqueueTrial(
        "bert", {.params = {{"model.name", std::string(model)}}}, "");
  };
  WorkerFacts both = MakeBertWorker("large", kLargeCard);
  both.models.push_back(without.models.front());
  Register(both);
  const TrialNumber for_both = enqueue("absent");
  const TrialNumber for_large = enqueue("tiny");
  EXPECT_EQ(Next(large, kLargeCard), for_large);
  EXPECT_EQ(Next(large, kLargeCard), for_both);
}

TEST_F(WaitingOrderTest, WhereASmallCardRanOutOfMemoryItNoLongerCounts) {
  StudySpec spec = PlainStudy();
  spec.memory.policy = MemoryPolicy::kOff;
  AddStudy(spec);
  const std::string small = Register(MakeWorker("small", kSmallCard));
  const std::string other = Register(MakeWorker("other", kSmallCard));
  const std::string large = Register(MakeWorker("large", kLargeCard));
  const LeaseRef given_back = MustAcquire(small, kSmallCard).lease;
  const LeaseRef too_large = MustAcquire(other, kSmallCard).lease;
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial("", {.lease = given_back, .reason = ReleaseReason::kPreempted})
                  .ok());
  EXPECT_EQ(Finish(too_large, OutOfMemory{.requested = MiB(100), .limit = kSmallCard}).state,
            TrialState::kQueued);
  EXPECT_EQ(Next(large, kLargeCard), too_large.trial.number);
  EXPECT_EQ(Next(large, kLargeCard), given_back.trial.number);
}

TEST_F(WaitingOrderTest, ADemonstrationNeedsNoRoom) {
  AddStudy(PlainStudy());
  LearnNeeds();
  Register(MakeWorker("small", kSmallCard));
  const std::string large = Register(MakeWorker("large", kLargeCard));
  const TrialNumber demonstration = *scheduler_->enqueuer().EnqueueTrial(
      "plain", {.params = {{"train.batch_size", int64_t{50}}}, .demonstration = true}, "");
  const TrialNumber for_large = Enqueue(48);
  EXPECT_EQ(Next(large, kLargeCard), for_large);
  EXPECT_EQ(Next(large, kLargeCard), demonstration);
}

}  // namespace
}  // namespace hpo::server
