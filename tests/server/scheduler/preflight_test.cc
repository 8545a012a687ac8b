// Configurations that a worker dry-runs before it is given them.
#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Bytes kCapacity = GiB(8);

WorkerFacts MakeGpuWorker(const std::string& name) {
  WorkerFacts facts = MakeWorker(name, kCapacity);
  facts.device.kind = "cuda";
  facts.device.capability = "8.0";
  facts.device.multiprocessors = 108;
  facts.device.threads_per_multiprocessor = 2048;
  facts.device.total = kCapacity;
  facts.preflight = PreflightAbility::kIfAsked;
  return facts;
}

StudySpec DryRunStudy(int64_t trials = 100) {
  StudySpec spec = PlainStudy("plain", trials);
  spec.memory.preflight = MemoryPreflight::kDryRun;
  return spec;
}

class PreflightTest : public SchedulerFixture {
 protected:
  // One that proposes another configuration where the first one does not fit.
  std::unique_ptr<sampler::Sampler> MakeStudySampler(const StudySpec& spec) override {
    StudySpec random = spec;
    random.sampler.type = "random";
    return sampler::MakeSampler(random, {});
  }

  std::optional<Preflight> Take(const std::string& session) {
    const auto taken =
        scheduler_->preflights().AcquirePreflight(session, absl::ZeroDuration(), nullptr);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.ok() ? *taken : std::nullopt;
  }

  Preflight MustTake(const std::string& session) {
    const std::optional<Preflight> taken = Take(session);
    EXPECT_TRUE(taken.has_value());
    return taken.value_or(Preflight{});
  }

  void Report(const std::string& session, const std::string& id, PreflightState state,
              Bytes required) {
    PreflightReport report{.id = id, .took = absl::Seconds(9), .message = "why"};
    report.needs.push_back({.capability = "8.0",
                            .threads = 108 * 2048,
                            .state = state,
                            .required = required,
                            .margin = MiB(300)});
    const absl::Status told = scheduler_->preflights().ReportPreflight(session, report);
    EXPECT_TRUE(told.ok()) << told;
  }

  std::vector<DryRunRecord> DryRuns() {
    return (*scheduler_->state().studies.Find("plain"))->dry_runs.All();
  }

  TrialNumber Enqueue(int64_t rows) {
    const auto number =
        scheduler_->enqueuer().EnqueueTrial("plain", {.params = {{"train.batch_size", rows}}}, "");
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(TrialNumber{-1});
  }
};

TEST_F(PreflightTest, AConfigurationIsGivenOnceItsDryRunSaysThatItFits) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  EXPECT_FALSE(Take(session).has_value()) << "nothing was asked for";
  const AcquireResult waits = Acquire(session, kCapacity);
  EXPECT_FALSE(waits.assignment.has_value());
  EXPECT_THAT(waits.waiting_for, HasSubstr("dry-run first"));
  EXPECT_FALSE(waits.blocked);
  const Preflight preflight = MustTake(session);
  EXPECT_EQ(preflight.assignment.lease.trial.study, "plain");
  EXPECT_FALSE(Take(session).has_value()) << "each once";
  EXPECT_FALSE(Acquire(session, kCapacity).assignment.has_value());
  Report(session, preflight.id, PreflightState::kMeasured, GiB(4));
  const Assignment given = MustAcquire(session, kCapacity);
  EXPECT_EQ(given.task.params, preflight.assignment.task.params);
  ASSERT_EQ(DryRuns().size(), 1U);
  EXPECT_FALSE(DryRuns().front().refused);
}

TEST_F(PreflightTest, OneThatDoesNotFitCostsNoTrial) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  Acquire(session, kCapacity);
  const Preflight refused = MustTake(session);
  Report(session, refused.id, PreflightState::kMeasured, GiB(9));
  EXPECT_TRUE(DryRuns().front().refused);
  EXPECT_EQ((*scheduler_->state().studies.Find("plain"))->next_number(), TrialNumber{0});
  Acquire(session, kCapacity);
  const Preflight next = MustTake(session);
  EXPECT_NE(next.id, refused.id);
}

TEST_F(PreflightTest, WhatWasFoundOutlivesARestart) {
  AddStudy(DryRunStudy());
  std::string session = Register(MakeGpuWorker("a"));
  const TrialNumber number = Enqueue(3);
  Acquire(session, kCapacity);
  Report(session, MustTake(session).id, PreflightState::kMeasured, GiB(4));
  const std::vector<DryRunRecord> before = DryRuns();
  ASSERT_EQ(before.size(), 1U);
  Restart();
  EXPECT_EQ(DryRuns(), before);
  session = Register(MakeGpuWorker("a"));
  EXPECT_EQ(MustAcquire(session, kCapacity).lease.trial.number, number) << "no second dry run";
}

TEST_F(PreflightTest, AQueuedTrialThatDoesNotFitEndsAsPredicted) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  const TrialNumber number = Enqueue(3);
  Acquire(session, kCapacity);
  const Preflight preflight = MustTake(session);
  EXPECT_EQ(preflight.assignment.lease.trial.number, number);
  Report(session, preflight.id, PreflightState::kMeasured, GiB(20));
  Acquire(session, kCapacity);
  const TrialRecord ended = Load("plain", number.value);
  ASSERT_EQ(ended.trial.state, TrialState::kPruned);
  EXPECT_EQ(PruneReasonOf(*ended.trial.outcome), PruneReason::kPredictedOutOfMemory);
}

TEST_F(PreflightTest, AfterThreeFailuresNoMoreAreAskedFor) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Acquire(session, kCapacity).assignment.has_value());
    Report(session, MustTake(session).id, PreflightState::kFailed, Bytes{});
    if (i == 0) {
      EXPECT_EQ(Status("plain").dry_runs->trouble, "the last that failed: why");
    }
    Complete(MustAcquire(session, kCapacity).lease, 0.5);
  }
  Complete(MustAcquire(session, kCapacity).lease, 0.5);
  EXPECT_FALSE(Take(session).has_value());
  EXPECT_THAT(Status("plain").dry_runs->trouble,
              HasSubstr("a makes no more, as 3 in a row have failed; the last: why"));
}

TEST_F(PreflightTest, AnUncertainOneIsForTheGpuToDecide) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  Acquire(session, kCapacity);
  const Preflight preflight = MustTake(session);
  Report(session, preflight.id, PreflightState::kUncertain, GiB(20));
  EXPECT_EQ(MustAcquire(session, kCapacity).task.params, preflight.assignment.task.params);
}

TEST_F(PreflightTest, WithoutAReportItIsGivenAfterTenMinutes) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  Acquire(session, kCapacity);
  const Preflight preflight = MustTake(session);
  Pass(absl::Minutes(9), {{session, kCapacity}});
  EXPECT_FALSE(Acquire(session, kCapacity).assignment.has_value());
  Pass(absl::Minutes(1), {{session, kCapacity}});
  EXPECT_EQ(MustAcquire(session, kCapacity).task.params, preflight.assignment.task.params);
  Report(session, preflight.id, PreflightState::kMeasured, GiB(4));
  EXPECT_THAT(DryRuns(), IsEmpty()) << "nobody waits for it any more";
}

TEST_F(PreflightTest, WhileATrialRunsTheNextOneIsDryRun) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  Acquire(session, kCapacity);
  Report(session, MustTake(session).id, PreflightState::kMeasured, GiB(4));
  const Assignment running = MustAcquire(session, kCapacity);
  const Preflight refused = MustTake(session);
  Report(session, refused.id, PreflightState::kMeasured, GiB(9));
  const Preflight next = MustTake(session);
  Report(session, next.id, PreflightState::kMeasured, GiB(4));
  EXPECT_FALSE(Take(session).has_value()) << "one at a time is enough";
  Complete(running.lease, 0.5);
  EXPECT_EQ(MustAcquire(session, kCapacity).task.params, next.assignment.task.params);
}

TEST_F(PreflightTest, TheLastTrialOfABudgetIsNotLookedBeyond) {
  AddStudy(DryRunStudy(1));
  const std::string session = Register(MakeGpuWorker("a"));
  Acquire(session, kCapacity);
  Report(session, MustTake(session).id, PreflightState::kMeasured, GiB(4));
  MustAcquire(session, kCapacity);
  EXPECT_FALSE(Take(session).has_value());
}

TEST_F(PreflightTest, WorkersThatCannotOrStudiesThatDoNotAskGoWithout) {
  AddStudy(DryRunStudy());
  WorkerFacts cannot = MakeGpuWorker("cannot");
  cannot.preflight = PreflightAbility::kNone;
  MustAcquire(Register(cannot), kCapacity);
  AddStudy(PlainStudy("other"));
  WorkerFacts always = MakeGpuWorker("always");
  always.preflight = PreflightAbility::kAlways;
  always.serves = {"other"};
  const std::string session = Register(always);
  EXPECT_FALSE(Acquire(session, kCapacity).assignment.has_value());
  EXPECT_TRUE(Take(session).has_value());
  WorkerFacts asked = MakeGpuWorker("asked");
  asked.serves = {"other"};
  MustAcquire(Register(asked), kCapacity);
}

TEST_F(PreflightTest, TwoWorkersAreNotHeldTheSame) {
  AddStudy(DryRunStudy());
  const std::string a = Register(MakeGpuWorker("a"));
  const std::string b = Register(MakeGpuWorker("b"));
  Acquire(a, kCapacity);
  Acquire(b, kCapacity);
  EXPECT_NE(MustTake(a).assignment.task.params, MustTake(b).assignment.task.params);
}

TEST_F(PreflightTest, TheStudySaysWhatDryRunsCameTo) {
  AddStudy(DryRunStudy());
  const std::string session = Register(MakeGpuWorker("a"));
  EXPECT_FALSE(Status("plain").dry_runs.has_value());
  Acquire(session, kCapacity);
  Report(session, MustTake(session).id, PreflightState::kMeasured, GiB(9));
  Acquire(session, kCapacity);
  Report(session, MustTake(session).id, PreflightState::kMeasured, GiB(4));
  const Assignment first = MustAcquire(session, kCapacity);
  clock_.Advance(absl::Minutes(5));
  Finish(first.lease, OutOfMemory{.limit = first.task.limit});
  const std::optional<DryRunCounts> counts = Status("plain").dry_runs;
  ASSERT_TRUE(counts.has_value());
  EXPECT_EQ(counts->made, 2);
  EXPECT_EQ(counts->refused, 1);
  EXPECT_EQ(counts->took, absl::Seconds(18));
  EXPECT_EQ(counts->saved, absl::Minutes(5));
  EXPECT_EQ(counts->trouble, "");
}

TEST_F(PreflightTest, AnUnknownSessionIsSaidSo) {
  EXPECT_TRUE(absl::IsNotFound(
      scheduler_->preflights().AcquirePreflight("nobody", absl::ZeroDuration(), nullptr).status()));
  EXPECT_TRUE(absl::IsNotFound(scheduler_->preflights().ReportPreflight("nobody", {})));
}

}  // namespace
}  // namespace hpo::server
