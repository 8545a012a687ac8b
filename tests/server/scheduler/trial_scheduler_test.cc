#include "server/scheduler/trial_scheduler.h"

#include <limits>
#include <set>

#include "common/base/limits.h"
#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

class TrialSchedulerTest : public SchedulerFixture {};

TEST_F(TrialSchedulerTest, AsksTellsAndFindsTheBest) {
  AddStudy(PlainStudy("plain", 3));
  const std::string session = Register(MakeWorker("a"));
  for (const double score : {0.3, 0.9, 0.5}) {
    const FinishResult told = Complete(MustAcquire(session).lease, score);
    EXPECT_EQ(told.state, TrialState::kCompleted);
    EXPECT_TRUE(told.stored);
  }
  const StudyStatus status = Status("plain");
  EXPECT_EQ(status.counts.completed, 3);
  EXPECT_TRUE(status.finished);
  EXPECT_EQ(status.best_trial, TrialNumber{1});
  EXPECT_EQ(status.best_value, 0.9);
}

TEST_F(TrialSchedulerTest, TheBestTrialKeepsTheConstraintsOrIsTheNearest) {
  StudySpec spec = PlainStudy("plain", 5);
  spec.constraints = {{.metric = "ms", .at_most = 50.0}};
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  const auto finish = [&](const Metrics& metrics) {
    Finish(MustAcquire(session).lease, Completed{.metrics = metrics, .model_path = ""});
    return Status("plain");
  };
  StudyStatus status = finish({{"score", 0.9}});
  EXPECT_EQ(status.best_trial, TrialNumber{0});
  EXPECT_EQ(status.best_violation, std::numeric_limits<double>::infinity()) << "not reported";
  status = finish({{"score", 0.3}, {"ms", 100.0}});
  EXPECT_EQ(status.best_trial, TrialNumber{1});
  EXPECT_EQ(status.best_violation, 1.0);
  status = finish({{"score", 0.1}, {"ms", 50.0}});
  EXPECT_EQ(status.best_trial, TrialNumber{2});
  EXPECT_EQ(status.best_value, 0.1);
  EXPECT_EQ(status.best_violation, 0.0);
  status = finish({{"score", 0.8}, {"ms", 51.0}});
  EXPECT_EQ(status.best_trial, TrialNumber{2});
  EXPECT_EQ(status.counts.completed, 4);
  EXPECT_EQ(status.counts.infeasible, 3);
}

TEST_F(TrialSchedulerTest, WhatIsInfeasibleIsTheSameAfterARestart) {
  StudySpec spec = PlainStudy("plain", 5);
  spec.constraints = {{.metric = "ms", .at_most = 50.0}, {.metric = "gain", .at_least = 0.5}};
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Metrics& metrics :
       {Metrics{{"score", 0.9}}, Metrics{{"score", 0.3}, {"ms", 75.0}, {"gain", 0.75}},
        Metrics{{"score", 0.3}, {"ms", infinity}, {"gain", 0.75}},
        Metrics{{"score", 0.1}, {"ms", 25.0}, {"gain", 0.5}}}) {
    Finish(MustAcquire(session).lease, Completed{.metrics = metrics, .model_path = ""});
  }
  const sampler::History before = (*scheduler_->state().studies.Find("plain"))->history();
  const sampler::HistoryTrial& second = before.trials().at(TrialNumber{1});
  EXPECT_EQ(second.violation, 0.5);
  EXPECT_EQ(second.excesses, (std::vector<double>{0.5, -0.5}));
  EXPECT_EQ(before.trials().at(TrialNumber{2}).violation, infinity);
  const StudyStatus status = Status("plain");
  Restart();
  EXPECT_EQ((*scheduler_->state().studies.Find("plain"))->history(), before);
  EXPECT_EQ(Status("plain").best_trial, status.best_trial);
  EXPECT_EQ(Status("plain").counts, status.counts);
}

TEST_F(TrialSchedulerTest, AnAssignmentIsComplete) {
  StudySpec spec = PlainStudy();
  spec.trainer.defaults["train.lr"] = 3e-5;
  spec.trainer.defaults["train.grad_accum"] = int64_t{4};
  spec.memory.allow_checkpointing = true;
  AddStudy(spec);
  const Assignment given = MustAcquire(Register(MakeWorker("a")), MiB(1100));
  EXPECT_EQ(given.lease.trial, (TrialId{"plain", TrialNumber{0}}));
  EXPECT_EQ(given.lease.attempt, AttemptNumber{1});
  EXPECT_EQ(given.lease.token.size(), 32u);
  EXPECT_EQ(given.task.params.at("train.batch_size"), ParamValue(int64_t{1}));
  EXPECT_EQ(given.task.params.at("train.lr"), ParamValue(3e-5));
  EXPECT_EQ(given.task.plan.effective_batch, 4);
  EXPECT_EQ(given.task.plan.micro_batch, 1);
  EXPECT_EQ(given.task.limit, MiB(1088)) << "rounded down to 64 MiB, a CPU keeps no headroom";
  EXPECT_EQ(given.task.objective.metric, "score");
  EXPECT_EQ(given.task.memory.policy, MemoryPolicy::kPlan);
  EXPECT_TRUE(given.task.memory.allow_checkpointing);
}

TEST_F(TrialSchedulerTest, TheSeedIsTheParameterOrDependsOnStudyAndNumberAlone) {
  StudySpec spec = PlainStudy();
  Trial trial;
  trial.id = TrialId{"plain", TrialNumber{7}};
  const uint64_t drawn = SeedOf(spec, trial);
  EXPECT_EQ(SeedOf(spec, trial), drawn);
  trial.id.number = TrialNumber{8};
  EXPECT_NE(SeedOf(spec, trial), drawn);
  trial.params["seed"] = int64_t{42};
  EXPECT_EQ(SeedOf(spec, trial), 42u);
}

TEST_F(TrialSchedulerTest, TheBudgetIsExactWithSeveralWorkers) {
  AddStudy(PlainStudy("plain", 3));
  std::set<int64_t> numbers;
  std::vector<LeaseRef> leases;
  for (const char* name : {"a", "b", "c"}) {
    leases.push_back(MustAcquire(Register(MakeWorker(name))).lease);
    numbers.insert(leases.back().trial.number.value);
  }
  EXPECT_EQ(numbers, (std::set<int64_t>{0, 1, 2}));
  const std::string fourth = Register(MakeWorker("d"));
  AcquireResult none = Acquire(fourth);
  EXPECT_FALSE(none.assignment);
  EXPECT_FALSE(none.all_studies_finished) << "three are still running";
  for (const LeaseRef& lease : leases) Complete(lease, 0.1);
  none = Acquire(fourth);
  EXPECT_FALSE(none.assignment);
  EXPECT_TRUE(none.all_studies_finished);
}

TEST_F(TrialSchedulerTest, ARepeatedRequestIdReturnsTheSameAssignmentWhileItsLeaseLives) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const auto first = Acquire(session, GiB(8), "request-1").assignment;
  const auto again = Acquire(session, GiB(4), "request-1").assignment;
  ASSERT_TRUE(first && again);
  EXPECT_EQ(again->lease, first->lease);
  EXPECT_EQ(again->task.limit, first->task.limit);
  EXPECT_EQ(again->task.params, first->task.params);
  Complete(first->lease, 0.5);
  const auto next = Acquire(session, GiB(8), "request-1").assignment;
  ASSERT_TRUE(next);
  EXPECT_EQ(next->lease.trial.number, TrialNumber{1});
}

TEST_F(TrialSchedulerTest, ATellIsStoredOnceHoweverOftenItComes) {
  AddStudy(PlainStudy());
  const Assignment given = MustAcquire(Register(MakeWorker("a")));
  const TrialOutcome outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""};
  EXPECT_TRUE(Finish(given.lease, outcome, "tell-1").stored);
  EXPECT_TRUE(Finish(given.lease, outcome, "tell-1").stored) << "the recorded answer";
  const FinishResult other = Finish(given.lease, outcome, "tell-2");
  EXPECT_FALSE(other.stored);
  EXPECT_EQ(other.state, TrialState::kCompleted);
  EXPECT_EQ(Status("plain").counts.completed, 1);
  const auto reused =
      scheduler_->results().FinishTrial("tell-1", FinishRequest{.lease = given.lease,
                                                                .outcome = Cancelled{"no"},
                                                                .memory = {},
                                                                .final_plan = {},
                                                                .measurements = {}});
  EXPECT_EQ(reused.status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(TrialSchedulerTest, AWrongTokenIsRefused) {
  AddStudy(PlainStudy());
  LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  lease.token = "forged";
  EXPECT_EQ(Beat(lease), Directive::kLeaseLost);
  EXPECT_TRUE(absl::IsAborted(scheduler_->results().ReportMeasurements({.lease = lease}).status()));
  EXPECT_TRUE(absl::IsAborted(scheduler_->results()
                                  .FinishTrial("", FinishRequest{.lease = lease,
                                                                 .outcome = Cancelled{""},
                                                                 .memory = {},
                                                                 .final_plan = {},
                                                                 .measurements = {}})
                                  .status()));
  lease.attempt = AttemptNumber{9};
  EXPECT_TRUE(
      absl::IsNotFound(scheduler_->results().ReportMeasurements({.lease = lease}).status()));
}

TEST_F(TrialSchedulerTest, ALeaseIsSuspectAfterOneTtlAndLostAfterTwo) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  Pass(kTtl);
  EXPECT_EQ(Load("plain", 0).trial.attempts.front().state, AttemptState::kLeased);
  Pass(absl::Seconds(5));
  EXPECT_EQ(Load("plain", 0).trial.attempts.front().state, AttemptState::kSuspect);
  EXPECT_EQ(Beat(lease), Directive::kContinue) << "a suspect that returns has lost nothing";
  EXPECT_EQ(Load("plain", 0).trial.attempts.front().state, AttemptState::kLeased);
  Pass(2 * kTtl + absl::Seconds(5));
  const TrialRecord lost = Load("plain", 0);
  EXPECT_EQ(lost.trial.state, TrialState::kQueued);
  EXPECT_EQ(lost.trial.attempts.front().state, AttemptState::kLost);
  EXPECT_EQ(Beat(lease), Directive::kLeaseLost);
}

TEST_F(TrialSchedulerTest, ASupersededAttemptIsAbortedAndItsLateResultStillWins) {
  AddStudy(PlainStudy());
  const LeaseRef old = MustAcquire(Register(MakeWorker("a"))).lease;
  Pass(2 * kTtl + absl::Seconds(5));
  const LeaseRef newer = MustAcquire(Register(MakeWorker("b"))).lease;
  EXPECT_EQ(newer.trial, old.trial);
  EXPECT_EQ(newer.attempt, AttemptNumber{2});
  EXPECT_TRUE(absl::IsAborted(scheduler_->results().ReportMeasurements({.lease = old}).status()));

  EXPECT_TRUE(Complete(old, 0.7).stored);
  EXPECT_EQ(Beat(newer), Directive::kLeaseLost);
  const FinishResult duplicate = Complete(newer, 0.1);
  EXPECT_FALSE(duplicate.stored) << "kept as evidence, never told twice";
  const TrialRecord record = Load("plain", 0);
  EXPECT_EQ(record.trial.value, 0.7);
  EXPECT_EQ(record.trial.attempts[0].state, AttemptState::kFinished);
  EXPECT_EQ(record.trial.attempts[1].state, AttemptState::kSuperseded);
  EXPECT_EQ(Status("plain").counts.completed, 1);
}

TEST_F(TrialSchedulerTest, ALateTransientFailureDoesNotDisturbTheNewerAttempt) {
  AddStudy(PlainStudy());
  const LeaseRef old = MustAcquire(Register(MakeWorker("a"))).lease;
  Pass(2 * kTtl + absl::Seconds(5));
  const LeaseRef newer = MustAcquire(Register(MakeWorker("b"))).lease;
  const FinishResult late =
      Finish(old, Failed{.failure_class = FailureClass::kTrainerCrashed, .message = "signal"});
  EXPECT_FALSE(late.stored);
  EXPECT_EQ(late.state, TrialState::kRunning);
  EXPECT_EQ(Beat(newer), Directive::kContinue);
}

TEST_F(TrialSchedulerTest, ARestartedWorkerFreesItsSlotAtOnce) {
  AddStudy(PlainStudy());
  WorkerFacts facts = MakeWorker("a");
  const std::string old_session = Register(facts);
  const LeaseRef old = MustAcquire(old_session).lease;
  facts.instance_key = "a-2";
  const std::string session = Register(facts, "a-1");
  EXPECT_NE(session, old_session);
  EXPECT_TRUE(
      absl::IsNotFound(scheduler_->dispatcher()
                           .AcquireTrial(old_session, "", absl::ZeroDuration(), GiB(8), nullptr)
                           .status()));
  EXPECT_EQ(Beat(old), Directive::kLeaseLost);
  const LeaseRef again = MustAcquire(session).lease;
  EXPECT_EQ(again.trial, old.trial);
  EXPECT_EQ(again.attempt, AttemptNumber{2});
  EXPECT_EQ(Register(facts), session) << "the same process keeps its session";
}

TEST_F(TrialSchedulerTest, TwoWorkersLostToOneTrialEndIt) {
  AddStudy(PlainStudy());
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(MustAcquire(Register(MakeWorker(name))).lease.trial.number, TrialNumber{0});
    Pass(2 * kTtl + absl::Seconds(5));
  }
  const TrialRecord record = Load("plain", 0);
  EXPECT_EQ(record.trial.state, TrialState::kFailed);
  EXPECT_EQ(std::get<Failed>(*record.trial.outcome).failure_class, FailureClass::kWorkerLost);
}

TEST_F(TrialSchedulerTest, MeasurementsAreStoredOnceAndMayStopTheTrial) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  const Measurement good{.step = 10, .epoch = 0.5, .metrics = {{"score", 0.2}}};
  const Measurement bad{.step = 20, .epoch = 1.0, .metrics = {{"score", -0.9}}};
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto report =
        scheduler_->results().ReportMeasurements({.lease = lease, .measurements = {good}});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->should_stop);
  }
  EXPECT_EQ(Beat(lease), Directive::kContinue);
  const auto report =
      scheduler_->results().ReportMeasurements({.lease = lease, .measurements = {good, bad}});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->should_stop);
  EXPECT_EQ(report->pruner, "threshold");
  EXPECT_EQ(Beat(lease), Directive::kStopPruned) << "also by heartbeat, if the reply was lost";
  EXPECT_EQ(Load("plain", 0).trial.last_measurement, bad);
  EXPECT_EQ(Finish(lease, StoppedByPruner{.pruner = "threshold", .step = 20, .metrics = {}}).state,
            TrialState::kPruned);
}

TEST_F(TrialSchedulerTest, AReplanIsRecordedWithItsOom) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  const MemoryPlan smaller{.effective_batch = 8, .micro_batch = 2};
  ASSERT_TRUE(scheduler_->results()
                  .ReportMeasurements({.lease = lease, .new_plan = smaller, .num_ooms = 1})
                  .ok());
  const TrialRecord record = Load("plain", 0);
  EXPECT_EQ(record.trial.attempts.front().final_plan, smaller);
  EXPECT_EQ(record.trial.attempts.front().memory->num_ooms, 1);
  Complete(lease, 0.5);
  const TrialCounts counts = Status("plain").counts;
  EXPECT_EQ(counts.oom_met, 1);
  EXPECT_EQ(counts.oom_recovered, 1);
}

TEST_F(TrialSchedulerTest, DrainHandsOutNothingAndStillTakesResults) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  scheduler_->state().work.Drain();
  const AcquireResult none = Acquire(session);
  EXPECT_TRUE(none.draining);
  EXPECT_FALSE(none.assignment);
  EXPECT_TRUE(Complete(lease, 0.5).stored);
}

TEST_F(TrialSchedulerTest, TheWallClockCountsOnlyWhileALeaseIsHeld) {
  StudySpec spec = PlainStudy();
  spec.budget.wall_clock = absl::Seconds(30);
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  Pass(absl::Seconds(100), {{session, GiB(8)}});
  EXPECT_EQ(Status("plain").wall_clock_used, absl::ZeroDuration());
  const LeaseRef lease = MustAcquire(session).lease;
  Pass(absl::Seconds(20), {{session, GiB(8)}});
  Complete(lease, 0.5);
  Pass(absl::Seconds(100), {{session, GiB(8)}});
  EXPECT_EQ(Status("plain").wall_clock_used, absl::Seconds(20));
  Restart();
  EXPECT_EQ(Status("plain").wall_clock_used, absl::Seconds(20));
  const std::string again = Register(MakeWorker("a"));
  const LeaseRef last = MustAcquire(again).lease;
  Pass(absl::Seconds(10), {{again, GiB(8)}});
  EXPECT_FALSE(Status("plain").finished) << "one is still running";
  EXPECT_EQ(Status("plain").waiting_for,
            "ends when the trials that run have ended: the study's wall clock is used up");
  Complete(last, 0.5);
  EXPECT_TRUE(Status("plain").finished);
  EXPECT_FALSE(Acquire(again).assignment);
}

TEST_F(TrialSchedulerTest, AGridEndsWithItsLastConfiguration) {
  StudySpec spec = PlainStudy();
  spec.sampler.type = "grid";
  spec.space.parameters[0].domain = IntDomain{.low = 1, .high = 2};
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  Complete(MustAcquire(session).lease, 0.9);
  const LeaseRef last = MustAcquire(session).lease;
  EXPECT_FALSE(Status("plain").finished) << "one is still running";
  Complete(last, 0.5);
  EXPECT_TRUE(Status("plain").finished);
  EXPECT_EQ(Status("plain").waiting_for,
            "every configuration of the space has been tried; to go on: hpo study edit plain FILE, "
            "with more values in FILE");
  EXPECT_FALSE(Acquire(session).assignment);
}

TEST_F(TrialSchedulerTest, AStudyWithoutProgressEndsAndSaysWhy) {
  StudySpec spec = PlainStudy();
  spec.budget.no_progress = 2;
  AddStudy(spec);
  std::string session = Register(MakeWorker("a"));
  Complete(MustAcquire(session).lease, 0.9);
  Complete(MustAcquire(session).lease, 0.5);
  EXPECT_FALSE(Status("plain").finished);
  Complete(MustAcquire(session).lease, 0.6);
  const StudyStatus ended = Status("plain");
  EXPECT_TRUE(ended.finished);
  EXPECT_EQ(ended.waiting_for,
            "no progress in the 2 trials since trial 0; to go on, raise budget.no_progress in its "
            "file");
  EXPECT_FALSE(Acquire(session).assignment);
  Restart();
  session = Register(MakeWorker("a"));
  EXPECT_TRUE(Status("plain").finished);

  spec.budget.no_progress = 3;
  AddStudy(spec);
  EXPECT_FALSE(Status("plain").finished) << "the file was changed";
  Complete(MustAcquire(session).lease, 0.95);
  EXPECT_FALSE(Status("plain").finished) << "trial 3 is the best";
}

TEST_F(TrialSchedulerTest, AStudyEndsAtItsRegretBoundAndSaysWhy) {
  StudySpec spec = PlainStudy();
  spec.budget.regret_bound = RegretBound{.gap = 100.0};
  AddStudy(spec);
  std::string session = Register(MakeWorker("a"));
  for (int i = 0; i < 20; ++i) {
    const Assignment assignment = MustAcquire(session);
    const auto batch = static_cast<double>(*FindInt(assignment.task.params, "train.batch_size"));
    Complete(assignment.lease, 0.01 * batch);
  }
  EXPECT_FALSE(Status("plain").finished) << "found out when the next trial is asked for";
  EXPECT_FALSE(Acquire(session).assignment);
  EXPECT_TRUE(Status("plain").finished);
  EXPECT_THAT(Status("plain").waiting_for,
              HasSubstr("after 20 trials the model expects nothing better than the best by more"));
  Restart();
  session = Register(MakeWorker("a"));
  EXPECT_FALSE(Acquire(session).assignment) << "the same history, the same decision";
  EXPECT_TRUE(Status("plain").finished);

  spec.budget.regret_bound = RegretBound{.gap = 1e-9};
  AddStudy(spec);
  EXPECT_FALSE(Status("plain").finished) << "the file was changed";
  MustAcquire(session);
}

TEST_F(TrialSchedulerTest, WhatRunsWhenTheRegretBoundEndsAStudyDoesNotHaveItGoOn) {
  StudySpec spec = PlainStudy();
  spec.budget.regret_bound = RegretBound{.gap = 100.0};
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef parallel = MustAcquire(Register(MakeWorker("b"))).lease;
  for (int i = 0; i < 20; ++i) {
    const Assignment assignment = MustAcquire(session);
    const auto batch = static_cast<double>(*FindInt(assignment.task.params, "train.batch_size"));
    Complete(assignment.lease, 0.01 * batch);
  }
  EXPECT_FALSE(Acquire(session).assignment);
  EXPECT_FALSE(Status("plain").finished) << "one runs";
  Complete(parallel, 0.5);
  EXPECT_TRUE(Status("plain").finished) << "nobody has to ask once more";
  EXPECT_THAT(Status("plain").waiting_for, HasSubstr("after 20 trials the model expects"));
}

TEST_F(TrialSchedulerTest, UnknownStudiesAreNamedWithThoseThereAre) {
  AddStudy(PlainStudy("one"));
  EXPECT_TRUE(scheduler_->state().studies.Find("").ok()) << "the only one";
  AddStudy(PlainStudy("two"));
  EXPECT_THAT(scheduler_->state().studies.Find("three").status().message(), HasSubstr("one, two"));
  EXPECT_TRUE(absl::IsNotFound(scheduler_->state().studies.Find("").status()));
}

TEST_F(TrialSchedulerTest, AnAttemptKeepsSoManyMeasurements) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  std::vector<Measurement> many;
  for (int64_t step = 0; step < kMeasurementLimit.most; ++step) many.push_back({.step = step});
  ASSERT_TRUE(
      scheduler_->results().ReportMeasurements({.lease = lease, .measurements = many}).ok());
  const Measurement one_more{.step = kMeasurementLimit.most};
  EXPECT_EQ(scheduler_->results()
                .ReportMeasurements({.lease = lease, .measurements = {one_more}})
                .status()
                .message(),
            "measurements: expected at most 20000 of an attempt, got 20001");
  // The result counts, whatever it brings.
  const auto result =
      scheduler_->results().FinishTrial("r", {.lease = lease,
                                              .outcome = Completed{.metrics = {{"score", 0.5}}},
                                              .memory = {},
                                              .final_plan = {},
                                              .measurements = {one_more}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->state, TrialState::kCompleted);
}

TEST_F(TrialSchedulerTest, RequestIdsAreForgottenWhileTheServerRuns) {
  AddStudy(PlainStudy());
  const EnqueueRequest first{.params = {{"train.batch_size", int64_t{1}}}};
  const EnqueueRequest second{.params = {{"train.batch_size", int64_t{2}}}};
  ASSERT_TRUE(scheduler_->enqueuer().EnqueueTrial("plain", first, "id").ok());
  clock_.Advance(absl::Hours(24) * (kRequestIdDays.most - 1));
  ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
  EXPECT_TRUE(
      absl::IsAlreadyExists(scheduler_->enqueuer().EnqueueTrial("plain", second, "id").status()));
  clock_.Advance(absl::Hours(48));
  ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
  EXPECT_TRUE(scheduler_->enqueuer().EnqueueTrial("plain", second, "id").ok());
}

}  // namespace
}  // namespace hpo::server
