// What attempts use widens the margin of those that follow, on every worker and across restarts.
#include "gmock/gmock.h"
#include "memory/plan/fit_decision.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

class CalibrationTest : public SchedulerFixture {
 protected:
  // Completes the trial with a use of `factor` times what was predicted.
  void CompleteUsing(const Assignment& assignment, double factor,
                     const std::string& request_id = "") {
    FinishRequest request;
    request.lease = assignment.lease;
    request.outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""};
    request.final_plan = assignment.task.plan;
    request.memory.live_peak =
        Bytes{static_cast<int64_t>(factor * static_cast<double>(assignment.task.predicted.count))};
    const auto finished = scheduler_->results().FinishTrial(request_id, request);
    ASSERT_TRUE(finished.ok()) << finished.status();
  }

  double Factor() const {
    return scheduler_->state().calibration.Snapshot().margins.Factor({.device_kind = "cpu"});
  }
  int64_t Version() const { return scheduler_->state().calibration.Snapshot().version; }

  // Of the trial's suggestion.
  int64_t StoredVersion(int64_t number) {
    auto database = Database::Open(database_.path(), Database::Access::kReadOnly).value();
    Statement row =
        database->Prepare("SELECT calibration_version FROM suggestion WHERE number = ?1");
    EXPECT_TRUE(row.Bind(number).Next().value());
    return row.Int(0);
  }
};

TEST_F(CalibrationTest, AnUnderestimateWidensTheMarginOfTheNext) {
  AddStudy(BertStudy());
  const std::string session = Register(MakeBertWorker("a"));
  const Assignment first = MustAcquire(session);
  EXPECT_EQ(first.required, first.task.predicted) << "on a CPU the estimate is an upper bound";
  CompleteUsing(first, 1.5);
  EXPECT_NEAR(Factor(), 0.5, 1e-6);
  const Assignment second = MustAcquire(session);
  EXPECT_EQ(second.required, memory::WithMargin(second.task.predicted, Factor()));
  // What would have fitted without the margin does not any more.
  const Assignment third = MustAcquire(session);
  Trial like_third;
  like_third.params = third.task.params;
  const WorkerFacts tight = MakeBertWorker("tight", third.task.predicted + MiB(1));
  EXPECT_TRUE(PlaceTrial(BertStudy(), tight, like_third, {}).fits);
  StudySpec strict = BertStudy();
  strict.memory.policy = MemoryPolicy::kStrict;
  const MemoryKnowledge knowledge = KnowledgeFor(strict, tight, {.history = sampler::History()},
                                                 scheduler_->state().calibration.Snapshot());
  EXPECT_FALSE(PlaceTrial(strict, tight, like_third, knowledge).fits);
  EXPECT_FALSE(AskFor(strict, tight, TrialNumber{9}, knowledge)
                   .feasibility({&third.task.params, 1})
                   .front()
                   .fits)
      << "the sampler keeps the same margin";
}

TEST_F(CalibrationTest, ARepeatedTellTeachesOnce) {
  AddStudy(BertStudy());
  const Assignment assignment = MustAcquire(Register(MakeBertWorker("a")));
  CompleteUsing(assignment, 0.9, "tell");
  CompleteUsing(assignment, 0.9, "tell");
  CompleteUsing(assignment, 0.9, "told again under another id");
  EXPECT_EQ(Version(), 1);
}

TEST_F(CalibrationTest, EachSuggestionKeepsTheVersionItWasMadeWith) {
  AddStudy(BertStudy());
  const std::string session = Register(MakeBertWorker("a"));
  CompleteUsing(MustAcquire(session), 0.9);
  CompleteUsing(MustAcquire(session), 1.2);
  MustAcquire(session);
  for (int64_t number = 0; number < 3; ++number) EXPECT_EQ(StoredVersion(number), number);
}

TEST_F(CalibrationTest, ARestartedServerKnowsTheSame) {
  AddStudy(BertStudy());
  const std::string session = Register(MakeBertWorker("a"));
  for (const double factor : {0.95, 1.04, 0.9, 1.01}) CompleteUsing(MustAcquire(session), factor);
  const CalibrationSnapshot before = scheduler_->state().calibration.Snapshot();
  EXPECT_EQ(before.version, 4);
  Restart();
  EXPECT_EQ(scheduler_->state().calibration.Snapshot().margins, before.margins);
  EXPECT_EQ(Version(), before.version);
}

TEST_F(CalibrationTest, ATrainerWithoutEstimatesTeachesNoMargin) {
  AddStudy(PlainStudy());
  const Assignment assignment = MustAcquire(Register(MakeWorker("a")));
  EXPECT_EQ(assignment.task.predicted, Bytes{});
  FinishRequest request;
  request.lease = assignment.lease;
  request.outcome = Completed{};
  request.memory.live_peak = GiB(1);
  ASSERT_TRUE(scheduler_->results().FinishTrial("", request).ok());
  EXPECT_EQ(Version(), 0);
}

// Of two cards, a trial that the small one's margin rules out waits for the large one.
TEST_F(CalibrationTest, AnUnderestimatedTrialWaitsForTheLargerCard) {
  StudySpec strict = BertStudy();
  strict.memory.policy = MemoryPolicy::kStrict;
  AddStudy(strict);
  const std::string large = Register(MakeBertWorker("large", GiB(16)));
  const Assignment first = MustAcquire(large, GiB(16));
  const Bytes tight = first.task.predicted + MiB(1);
  const std::string small = Register(MakeBertWorker("small", tight));
  // Met on the small card, though it was predicted to fit: again on the large one.
  OutOfMemory oom;
  oom.limit = tight;
  const auto number =
      scheduler_->enqueuer().EnqueueTrial("bert", {.params = first.task.params}, "");
  ASSERT_TRUE(number.ok()) << number.status();
  const Assignment met = MustAcquire(small, tight);
  ASSERT_EQ(met.lease.trial.number, *number);
  EXPECT_EQ(Finish(met.lease, oom).state, TrialState::kQueued);
  EXPECT_GT(Factor(), 0.02);
  EXPECT_EQ(MustAcquire(large, GiB(16)).lease.trial.number, *number);
  // The next of its size is not even tried on the small card.
  const auto next = scheduler_->enqueuer().EnqueueTrial("bert", {.params = first.task.params}, "");
  ASSERT_TRUE(next.ok()) << next.status();
  const AcquireResult none = Acquire(small, tight);
  const bool given_another = none.assignment && none.assignment->lease.trial.number != *next;
  EXPECT_TRUE(!none.assignment || given_another);
  EXPECT_EQ(Load("bert", next->value).trial.state, TrialState::kQueued);
  EXPECT_EQ(MustAcquire(large, GiB(16)).lease.trial.number, *next);
}

}  // namespace
}  // namespace hpo::server
