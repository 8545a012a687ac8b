#include "worker/agent/process/exit_outcome.h"

#include <csignal>
#include <string>
#include <utility>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

TrainerEnd Exited(int code) { return {.exit = {.code = code, .signal = std::nullopt}}; }
TrainerEnd Signalled(int signal) { return {.exit = {.code = std::nullopt, .signal = signal}}; }

Measurement Measured(int64_t step, double value) {
  return {.step = step, .epoch = 1.0, .metrics = {{"macro_f1", value}}};
}

TEST(ExitOutcome, AnOutcomeLineWinsOverEverything) {
  TrainerEnd end = Signalled(SIGKILL);
  end.oom_kills = 1;
  end.protocol_error = "garbage";
  end.outcome = OutcomeMessage{.outcome = Completed{.metrics = {{"macro_f1", 0.5}}}};
  EXPECT_EQ(ClassifyEnd(end), TrialOutcome(Completed{.metrics = {{"macro_f1", 0.5}}}));
}

TEST(ExitOutcome, ExitCodesAreFailureClasses) {
  const std::pair<int, FailureClass> cases[] = {
      {22, FailureClass::kDiverged},         {23, FailureClass::kBadData},
      {24, FailureClass::kBadModel},         {64, FailureClass::kBadConfiguration},
      {78, FailureClass::kBadConfiguration}, {99, FailureClass::kInternal},
      {1, FailureClass::kTrainerCrashed},    {127, FailureClass::kTrainerCrashed},
  };
  for (const auto& [code, failure_class] : cases) {
    SCOPED_TRACE(code);
    const TrialOutcome outcome = ClassifyEnd(Exited(code));
    ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
    EXPECT_EQ(std::get<Failed>(outcome).failure_class, failure_class);
    EXPECT_THAT(std::get<Failed>(outcome).message,
                HasSubstr("exited with status " + std::to_string(code)));
  }
}

TEST(ExitOutcome, Status127OfATrainerThatMeasuredNothingCannotStart) {
  EXPECT_TRUE(CannotStart(Exited(127)));
  EXPECT_FALSE(CannotStart(Exited(1)));
  EXPECT_FALSE(CannotStart(Signalled(SIGKILL)));
  TrainerEnd measured = Exited(127);
  measured.last_measurement = Measured(1, 0.5);
  EXPECT_FALSE(CannotStart(measured));
  TrainerEnd told = Exited(127);
  told.outcome = OutcomeMessage{};
  EXPECT_FALSE(CannotStart(told));
}

TEST(ExitOutcome, ExitCodesOfMemoryNameTheKindAndKeepThePlan) {
  const std::pair<int, OomKind> cases[] = {{20, OomKind::kConfiguration}, {21, OomKind::kHost}};
  for (const auto& [code, kind] : cases) {
    SCOPED_TRACE(code);
    TrainerEnd end = Exited(code);
    end.plan = {.effective_batch = 32, .micro_batch = 8};
    end.limit = GiB(2);
    end.last_measurement = Measured(7, 0.1);
    end.stage = "Training Start";
    const TrialOutcome outcome = ClassifyEnd(end);
    ASSERT_TRUE(std::holds_alternative<OutOfMemory>(outcome));
    const OutOfMemory& oom = std::get<OutOfMemory>(outcome);
    EXPECT_EQ(oom.kind, kind);
    EXPECT_EQ(oom.plan, end.plan);
    EXPECT_EQ(oom.limit, GiB(2));
    EXPECT_EQ(oom.step, 7);
    EXPECT_EQ(oom.phase, "Training Start");
  }
}

TEST(ExitOutcome, StatusZeroCompletesWithTheLastMeasurement) {
  TrainerEnd end = Exited(0);
  end.last_measurement = Measured(3, 0.75);
  EXPECT_EQ(ClassifyEnd(end), TrialOutcome(Completed{.metrics = {{"macro_f1", 0.75}}}));
}

TEST(ExitOutcome, StatusZeroWithoutAnyMeasurementBreaksTheProtocol) {
  const TrialOutcome outcome = ClassifyEnd(Exited(0));
  ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
  EXPECT_EQ(std::get<Failed>(outcome).failure_class, FailureClass::kProtocol);
  EXPECT_THAT(std::get<Failed>(outcome).message,
              HasSubstr("expected an outcome or a measurement, got none"));
}

TEST(ExitOutcome, StatusTenIsPrunedByWhoeverAskedForIt) {
  TrainerEnd end = Exited(10);
  end.last_measurement = Measured(4, 0.2);
  EXPECT_EQ(ClassifyEnd(end), TrialOutcome(StoppedByPruner{
                                  .pruner = "trainer", .step = 4, .metrics = {{"macro_f1", 0.2}}}));
  end.pruner = "median";
  EXPECT_EQ(std::get<StoppedByPruner>(ClassifyEnd(end)).pruner, "median");
}

TEST(ExitOutcome, StatusTwentyFiveIsTheUsersWish) {
  EXPECT_TRUE(std::holds_alternative<Cancelled>(ClassifyEnd(Exited(25))));
}

TEST(ExitOutcome, KilledIsHostMemoryOnlyWhenTheKernelCountedIt) {
  TrainerEnd end = Signalled(SIGKILL);
  ASSERT_TRUE(std::holds_alternative<Failed>(ClassifyEnd(end)));
  EXPECT_EQ(std::get<Failed>(ClassifyEnd(end)).failure_class, FailureClass::kTrainerKilled);

  end.oom_kills = 2;
  const TrialOutcome outcome = ClassifyEnd(end);
  ASSERT_TRUE(std::holds_alternative<OutOfMemory>(outcome));
  EXPECT_EQ(std::get<OutOfMemory>(outcome).kind, OomKind::kHost);
}

TEST(ExitOutcome, OtherSignalsAreCrashesByName) {
  const std::pair<int, std::string> cases[] = {
      {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGTERM, "SIGTERM"}};
  for (const auto& [signal, name] : cases) {
    SCOPED_TRACE(name);
    TrainerEnd end = Signalled(signal);
    end.oom_kills = 1;  // somebody else's: the kernel kills by SIGKILL alone
    const TrialOutcome outcome = ClassifyEnd(end);
    ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
    EXPECT_EQ(std::get<Failed>(outcome).failure_class, FailureClass::kTrainerCrashed);
    EXPECT_THAT(std::get<Failed>(outcome).message, HasSubstr("was killed by " + name));
  }
}

TEST(ExitOutcome, AProtocolErrorBeatsTheWayItWasEnded) {
  TrainerEnd end = Signalled(SIGKILL);
  end.protocol_error = "the trainer sent 'hello?': not JSON";
  const TrialOutcome outcome = ClassifyEnd(end);
  ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
  EXPECT_EQ(std::get<Failed>(outcome).failure_class, FailureClass::kProtocol);
  EXPECT_THAT(std::get<Failed>(outcome).message, HasSubstr("'hello?'"));
}

// ---- ResultOf: what goes with an outcome ----

TEST(ResultOf, LacksAreFilledFromTheMemoryLinesAndTheBaseIsTheDevices) {
  TrainerEnd simple = Exited(20);
  simple.plan = {.effective_batch = 32, .micro_batch = 8};
  simple.limit = MiB(90);
  simple.base = MiB(10);
  simple.live_peak = MiB(70);
  simple.host_growth = MiB(64);
  simple.beat.step = 7;
  simple.num_ooms = 2;
  const FinishRequest of_simple = ResultOf(OutOfMemory{.needed = MiB(95)}, simple);
  const auto& oom = std::get<OutOfMemory>(of_simple.outcome);
  EXPECT_EQ(oom.limit, MiB(100));
  EXPECT_EQ(oom.needed, MiB(105));
  EXPECT_EQ(oom.plan, simple.plan);
  EXPECT_EQ(oom.step, 7);
  EXPECT_EQ(of_simple.final_plan, simple.plan);
  EXPECT_EQ(of_simple.memory.live_peak, MiB(70));
  EXPECT_EQ(of_simple.memory.limit, MiB(100));
  EXPECT_EQ(of_simple.memory.growth, MiB(64));
  EXPECT_EQ(of_simple.memory.num_ooms, 2);

  const auto host = std::get<OutOfMemory>(
      ResultOf(OutOfMemory{.kind = OomKind::kHost, .needed = MiB(95)}, simple).outcome);
  EXPECT_EQ(host.limit, MiB(90));
  EXPECT_EQ(host.needed, MiB(95));
}

TEST(ResultOf, WhatTheTrainerSaysCounts) {
  TrainerEnd end;
  end.plans = true;
  end.plan = {.effective_batch = 32, .micro_batch = 8};
  end.base = MiB(10);
  end.live_peak = MiB(70);
  end.num_ooms = 2;
  end.outcome = OutcomeMessage{
      .outcome = Completed{},
      .memory = {.live_peak = MiB(80), .reserved_peak = MiB(85), .limit = MiB(90), .num_ooms = 3},
      .final_plan = {.effective_batch = 32, .micro_batch = 4}};
  const FinishRequest result = ResultOf(Completed{}, end);
  EXPECT_EQ(result.memory.live_peak, MiB(80));
  EXPECT_EQ(result.memory.device_peak, MiB(95));
  EXPECT_EQ(result.memory.limit, MiB(100));
  EXPECT_EQ(result.memory.num_ooms, 3);
  EXPECT_EQ(result.final_plan.micro_batch, 4);
  const MemoryPlan other{.effective_batch = 1, .micro_batch = 1};
  const auto oom = std::get<OutOfMemory>(ResultOf(OutOfMemory{.plan = other}, end).outcome);
  EXPECT_EQ(oom.plan, other);
}

// ---- JudgeAttempt: the same ends, in view of what the agent had asked for ----

OutcomeMessage Said(std::optional<TrialOutcome> outcome) { return {.outcome = std::move(outcome)}; }

TEST(JudgeAttempt, WithoutAStopItIsTheTrainersOwnEnd) {
  EXPECT_EQ(JudgeAttempt(Signalled(SIGSEGV)), ClassifyEnd(Signalled(SIGSEGV)));
  TrainerEnd end;
  end.outcome = Said(std::nullopt);
  const std::optional<TrialOutcome> outcome = JudgeAttempt(end);
  ASSERT_TRUE(outcome && std::holds_alternative<Failed>(*outcome));
  EXPECT_EQ(std::get<Failed>(*outcome).failure_class, FailureClass::kProtocol);
}

TEST(ClassifyEnd, WhatSigkillDoesNotEndIsNamed) {
  TrainerEnd end;
  end.killed_by_agent = true;
  end.undying = 4711;
  const auto failed = std::get<Failed>(ClassifyEnd(end));
  EXPECT_EQ(failed.failure_class, FailureClass::kTrainerKilled);
  EXPECT_THAT(failed.message, HasSubstr("(pid 4711) did not end after SIGKILL"));
  end.protocol_error = "it sent nonsense";
  EXPECT_EQ(std::get<Failed>(ClassifyEnd(end)).failure_class, FailureClass::kProtocol);
}

TEST(JudgeAttempt, ADrainKeepsAResultAndNothingElse) {
  TrainerEnd end;
  end.stop_cause = StopCause::kDrain;
  end.outcome = Said(std::nullopt);
  EXPECT_EQ(JudgeAttempt(end), std::nullopt);
  end.outcome = Said(StoppedByPruner{.pruner = "?"});
  EXPECT_EQ(JudgeAttempt(end), std::nullopt);
  end.outcome = Said(Cancelled{});
  EXPECT_EQ(JudgeAttempt(end), std::nullopt);
  end.outcome = Said(Completed{.metrics = {{"macro_f1", 0.9}}});
  EXPECT_EQ(JudgeAttempt(end), TrialOutcome(Completed{.metrics = {{"macro_f1", 0.9}}}));

  TrainerEnd killed = Signalled(SIGKILL);
  killed.stop_cause = StopCause::kDrain;
  killed.killed_by_agent = true;
  EXPECT_EQ(JudgeAttempt(killed), std::nullopt);

  killed.stop_cause = StopCause::kPreempted;
  EXPECT_EQ(JudgeAttempt(killed), std::nullopt);
  end.stop_cause = StopCause::kPreempted;
  EXPECT_EQ(JudgeAttempt(end), TrialOutcome(Completed{.metrics = {{"macro_f1", 0.9}}}));
}

TEST(JudgeAttempt, PrunedIsPrunedWithWhatWasMeasuredLast) {
  const StoppedByPruner expected{.pruner = "median", .step = 4, .metrics = {{"macro_f1", 0.2}}};
  TrainerEnd killed = Signalled(SIGKILL);
  killed.stop_cause = StopCause::kPruned;
  killed.killed_by_agent = true;
  killed.pruner = "median";
  killed.last_measurement = Measured(4, 0.2);
  EXPECT_EQ(JudgeAttempt(killed), TrialOutcome(expected));

  TrainerEnd silent = killed;
  silent.outcome = Said(std::nullopt);
  EXPECT_EQ(JudgeAttempt(silent), TrialOutcome(expected));

  TrainerEnd spoke = killed;
  spoke.outcome = Said(StoppedByPruner{.pruner = "", .step = 5, .metrics = {}});
  EXPECT_EQ(JudgeAttempt(spoke), TrialOutcome(StoppedByPruner{.pruner = "median", .step = 5}));
}

TEST(JudgeAttempt, ATrainerThatDiesWhileItIsPrunedHasDied) {
  TrainerEnd end = Signalled(SIGSEGV);
  end.stop_cause = StopCause::kPruned;
  const std::optional<TrialOutcome> outcome = JudgeAttempt(end);
  ASSERT_TRUE(outcome && std::holds_alternative<Failed>(*outcome));
}

TEST(JudgeAttempt, ACompletionThatCrossesTheStopCounts) {
  TrainerEnd end;
  end.stop_cause = StopCause::kPruned;
  end.outcome = Said(Completed{.metrics = {{"macro_f1", 0.9}}});
  EXPECT_TRUE(std::holds_alternative<Completed>(*JudgeAttempt(end)));
}

TEST(JudgeAttempt, CancelledIsCancelledAndALostLeaseIsNothing) {
  TrainerEnd end;
  end.outcome = Said(Completed{});
  end.stop_cause = StopCause::kCancelled;
  EXPECT_TRUE(std::holds_alternative<Cancelled>(*JudgeAttempt(end)));
  end.stop_cause = StopCause::kLeaseLost;
  EXPECT_EQ(JudgeAttempt(end), std::nullopt);
}

TEST(JudgeAttempt, StopReasonsAreThoseOfTheProtocol) {
  EXPECT_STREQ(StopReason(StopCause::kPruned), "pruned");
  EXPECT_STREQ(StopReason(StopCause::kTimeLimit), "time limit");
  EXPECT_STREQ(StopReason(StopCause::kDrain), "drain");
  EXPECT_STREQ(StopReason(StopCause::kPreempted), "preempted");
  EXPECT_STREQ(StopReason(StopCause::kCancelled), "cancelled");
  EXPECT_STREQ(StopReason(StopCause::kLeaseLost), "lease lost");
}

}  // namespace
}  // namespace hpo::agent
