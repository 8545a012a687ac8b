// Trainers that are not ours: what they report decides where the next of their trials may run.
#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kSmallNeed = GiB(8);
constexpr Bytes kLargeNeed = GiB(64);

// The program under study: a GiB for each row of the batch.
Bytes UseOf(const ParamMap& params) { return GiB(*FindInt(params, "train.batch_size")); }

ParamMap Batch(int64_t rows) { return {{"train.batch_size", rows}}; }

class LearnedNeedTest : public SchedulerFixture {
 protected:
  // Runs the trial as the program would within what it may use.
  void Run(const Assignment& assignment) {
    FinishRequest request;
    request.lease = assignment.lease;
    const Bytes use = UseOf(assignment.task.params);
    if (use > assignment.task.limit) {
      request.outcome = OutOfMemory{.limit = assignment.task.limit};
    } else {
      request.outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""};
      request.memory = {.live_peak = use, .limit = assignment.task.limit};
    }
    const auto finished = scheduler_->results().FinishTrial("", request);
    ASSERT_TRUE(finished.ok()) << finished.status();
  }

  TrialNumber Enqueue(const ParamMap& params) {
    const auto number = scheduler_->enqueuer().EnqueueTrial("plain", {.params = params}, "");
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(TrialNumber{-1});
  }

  MemoryKnowledge Knowledge(const WorkerFacts& worker) {
    return scheduler_->state().Knowledge(**scheduler_->state().studies.Find("plain"), worker);
  }
  memory::LearnedFit Learned(const WorkerFacts& worker, const ParamMap& params) {
    return *memory::FitDecider(PlainStudy(), worker, Knowledge(worker).evidence)
                .Learned(params, worker.capacity);
  }
};

TEST_F(LearnedNeedTest, WhatMetAnOomIsNotTriedAgainNorAnythingLarger) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a", kSmallNeed));
  const TrialNumber met = Enqueue(Batch(10));
  Run(MustAcquire(session, kSmallNeed));
  EXPECT_EQ(PruneReasonOf(*Load("plain", met.value).trial.outcome), PruneReason::kOutOfMemory);
  const TrialNumber larger = Enqueue(Batch(11));
  const TrialNumber smaller = Enqueue(Batch(9));
  EXPECT_EQ(MustAcquire(session, kSmallNeed).lease.trial.number, smaller);
  const TrialRecord refused = Load("plain", larger.value);
  ASSERT_EQ(refused.trial.state, TrialState::kPruned);
  EXPECT_EQ(PruneReasonOf(*refused.trial.outcome), PruneReason::kPredictedOutOfMemory);
  EXPECT_THAT(std::get<OutOfMemory>(*refused.trial.outcome).message,
              HasSubstr("by what other trials used, allowed 8.00 GiB"));
}

TEST_F(LearnedNeedTest, AfterAFewRunsTheNeedIsKnown) {
  AddStudy(PlainStudy());
  const WorkerFacts facts = MakeWorker("a", kSmallNeed);
  const std::string session = Register(facts);
  for (int i = 0; i < 6; ++i) Run(MustAcquire(session, kSmallNeed));  // batches 1 to 6
  const memory::LearnedFit fit = Learned(facts, Batch(7));
  EXPECT_TRUE(fit.fits);
  EXPECT_EQ(fit.expected, GiB(7));
  EXPECT_FALSE(Learned(facts, Batch(12)).fits) << "though no OOM was ever met";
  EXPECT_TRUE(Learned(MakeWorker("large", kLargeNeed), Batch(12)).fits);
  const Assignment next = MustAcquire(session, kSmallNeed);
  EXPECT_EQ(next.task.predicted, GiB(7));
  EXPECT_GT(next.required, next.task.predicted);
  EXPECT_LE(next.required, next.task.limit);
  // The sampler is told the same.
  const sampler::AskContext context =
      AskFor(PlainStudy(), facts, TrialNumber{99}, Knowledge(facts));
  const std::vector<ParamMap> candidates = {Batch(7), Batch(12)};
  const std::vector<memory::Fit> fits = context.feasibility(candidates);
  EXPECT_TRUE(fits[0].fits);
  EXPECT_FALSE(fits[1].fits);
  Restart();
  EXPECT_EQ(Learned(facts, Batch(12)).needed, fits[1].needed) << "the same after a restart";
}

TEST_F(LearnedNeedTest, WhatIsTooLargeForOneCardWaitsForALargerOne) {
  AddStudy(PlainStudy());
  const std::string small = Register(MakeWorker("small", kSmallNeed));
  const std::string large = Register(MakeWorker("large", kLargeNeed));
  const TrialNumber met = Enqueue(Batch(10));
  Run(MustAcquire(small, kSmallNeed));
  EXPECT_EQ(Load("plain", met.value).trial.state, TrialState::kQueued) << "met on the small card";
  const TrialNumber predicted = Enqueue(Batch(20));
  const Assignment other = MustAcquire(small, kSmallNeed);
  EXPECT_NE(other.lease.trial.number, met);
  EXPECT_NE(other.lease.trial.number, predicted);
  for (const TrialNumber number : {met, predicted}) {
    const Assignment given = MustAcquire(large, kLargeNeed);
    EXPECT_EQ(given.lease.trial.number, number);
    Run(given);
    EXPECT_EQ(Load("plain", number.value).trial.state, TrialState::kCompleted);
  }
}

TEST_F(LearnedNeedTest, ARefusalDoesNotConfirmItself) {
  AddStudy(PlainStudy());
  const WorkerFacts facts = MakeWorker("a", kSmallNeed);
  const std::string session = Register(facts);
  Enqueue(Batch(10));
  Run(MustAcquire(session, kSmallNeed));
  const TrialNumber refused = Enqueue(Batch(60));
  Run(MustAcquire(session, kSmallNeed));
  ASSERT_EQ(PruneReasonOf(*Load("plain", refused.value).trial.outcome),
            PruneReason::kPredictedOutOfMemory);
  // On a card of twice the size nothing is known of a batch of 60.
  EXPECT_TRUE(Learned(MakeWorker("twice", kSmallNeed * 2), Batch(60)).fits);
}

TEST_F(LearnedNeedTest, WithoutAdmissionItRunsAnyway) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a", kSmallNeed));
  Enqueue(Batch(10));
  Run(MustAcquire(session, kSmallNeed));
  const auto forced = scheduler_->enqueuer().EnqueueTrial(
      "plain", {.params = Batch(11), .skip_admission = true}, "");
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_EQ(MustAcquire(session, kSmallNeed).lease.trial.number, *forced);
}

}  // namespace
}  // namespace hpo::server
