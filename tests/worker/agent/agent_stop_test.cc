// What ends an attempt before its trainer does: the server's word, a lost lease, a drain.
#include <filesystem>
#include <thread>
#include <variant>

#include "common/protocol/refusal.h"
#include "tests/worker/agent/agent_loop_fixture.h"

namespace hpo::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class AgentStopTest : public AgentLoopTest {};

// ---- Stops ----

// Ends when it is told to, and has best weights from its first measurement on.
const ParamMap kEndless = {{"fake.measurements", int64_t{100000}},
                           {"fake.pace_ms", int64_t{1}},
                           {"fake.best", int64_t{1}}};

TEST_F(AgentStopTest, AStopInTheReplyPrunesTheTrial) {
  coordinator_.StopFromStep(2);
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  const TrialOutcome outcome = OnlyOutcome();
  const auto* pruned = std::get_if<StoppedByPruner>(&outcome);
  ASSERT_NE(pruned, nullptr);
  EXPECT_EQ(pruned->pruner, "median");
  EXPECT_GE(pruned->step, 2);
  EXPECT_LT(pruned->step, 100000);
  EXPECT_THAT(launcher_.pids_, SizeIs(1));
}

TEST_F(AgentStopTest, AStopInAHeartbeatPrunesTheTrial) {
  coordinator_.SetDirective(Directive::kStopPruned);
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  Run();
  EXPECT_TRUE(std::holds_alternative<StoppedByPruner>(OnlyOutcome()));
}

TEST_F(AgentStopTest, ATrialThatHasUsedItsTimeKeepsItsBestWeights) {
  coordinator_.OnReport([this](const AttemptReport&) {
    coordinator_.SetDirectiveFor(0, Directive::kTimeLimit);
    coordinator_.SetDirectiveFor(1, Directive::kStopPruned);
  });
  Add(0, kEndless);
  Add(1, kEndless);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  ASSERT_THAT(coordinator_.results(), SizeIs(2));
  const auto stopped = std::get<StoppedByPruner>(coordinator_.results()[0].outcome);
  EXPECT_EQ(stopped.pruner, "time limit");
  EXPECT_THAT(stopped.metrics, SizeIs(1)) << "with what it has";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "runs/s/000000-1/best/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/s/000001-1/best")) << "pruned for its value";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoints/s/000000")) << "nobody goes on";
}

TEST_F(AgentStopTest, ADeafTrainerIsKilledAndStillPruned) {
  options_.attempt.stop_grace = absl::Milliseconds(20);
  coordinator_.StopFromStep(2);
  Add(0, {{"fake.fault", std::string("hang")}, {"fake.fault_step", int64_t{3}}});
  Run();
  const TrialOutcome outcome = OnlyOutcome();
  ASSERT_TRUE(std::holds_alternative<StoppedByPruner>(outcome));
  EXPECT_EQ(std::get<StoppedByPruner>(outcome).step, 2);
}

TEST_F(AgentStopTest, ATrainerThatSaidItTakesLongToEndGetsTheTime) {
  options_.attempt.stop_grace = absl::Milliseconds(20);
  coordinator_.SetDirectiveFor(0, Directive::kPreempted);
  for (const bool patient : {true, false}) {
    SCOPED_TRACE(patient);
    launcher_.pids_.clear();
    if (!patient) options_.attempt.longest_stop_grace = absl::Milliseconds(20);
    Add(0, {{"fake.measurements", int64_t{100000}},
            {"fake.pace_ms", int64_t{1}},
            {"fake.stop_seconds", int64_t{60}},
            {"fake.stop_ms", int64_t{patient ? 400 : 20'000}}});
    Add(1);
    EXPECT_EQ(Run().code, ExitCode::kDone);
    EXPECT_THAT(launcher_.pids_, SizeIs(patient ? 1 : 2)) << "a killed one is replaced";
  }
}

TEST_F(AgentStopTest, BeforeATimeLimitTheTrainersTimeIsLeft) {
  std::atomic<int64_t> seconds = 0;
  coordinator_.OnReport(
      [&](const AttemptReport&) { seconds = absl::ToInt64Seconds(stop_.ending_time()); });
  Add(0, {{"fake.stop_seconds", int64_t{600}}, {"fake.pace_ms", int64_t{50}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_EQ(seconds, 630) << "and half a minute to give the trial back";
  EXPECT_EQ(stop_.ending_time(), StopSignal::kEndingTime);
}

TEST_F(AgentStopTest, ACancelledTrialEndsCancelled) {
  coordinator_.SetDirective(Directive::kCancelled);
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  Run();
  EXPECT_TRUE(std::holds_alternative<Cancelled>(OnlyOutcome()));
}

TEST_F(AgentStopTest, ACancellationComesWithTheAnswerToAReport) {
  coordinator_.SetHeartbeatInterval(absl::Hours(1));
  coordinator_.OnReport(
      [this](const AttemptReport&) { coordinator_.SetDirective(Directive::kCancelled); });
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  Run();
  EXPECT_TRUE(std::holds_alternative<Cancelled>(OnlyOutcome()));
}

TEST_F(AgentStopTest, ALostLeaseDropsTheResult) {
  coordinator_.SetDirective(Directive::kLeaseLost);
  Add(0, kEndless);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_FALSE(HasBest(0));
  EXPECT_THAT(coordinator_.results(), IsEmpty());
  EXPECT_THAT(coordinator_.releases(), IsEmpty());
  EXPECT_EQ(coordinator_.num_finish_calls(), 0);
}

TEST_F(AgentStopTest, AnAbortedReportIsALostLeaseToo) {
  coordinator_.SetReportStatus(WithRefusal(absl::AbortedError("attempt 2 holds the lease"), {}));
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_EQ(coordinator_.num_finish_calls(), 0);
}

// ---- Draining ----

TEST_F(AgentStopTest, ADrainGivesTheTrialBack) {
  coordinator_.NeverFinish();
  coordinator_.OnReport([this](const AttemptReport&) {
    if (!stop_.raised()) stop_.Raise();
  });
  Add(0, kEndless);
  EXPECT_EQ(Run().code, ExitCode::kTryAgain);
  EXPECT_FALSE(HasBest(0)) << "the next attempt has its own";
  const std::vector<TrialRelease> releases = coordinator_.releases();
  ASSERT_THAT(releases, SizeIs(1));
  EXPECT_EQ(releases[0].reason, ReleaseReason::kPreempted);
  EXPECT_THAT(coordinator_.results(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints/s/000000"));
}

TEST_F(AgentStopTest, AnOrderedPreemptionGivesTheTrialBackAndTheWorkerGoesOn) {
  coordinator_.SetDirectiveFor(0, Directive::kPreempted);
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  Add(1);
  EXPECT_EQ(Run().code, ExitCode::kDone) << "the order is no drain";
  const std::vector<TrialRelease> releases = coordinator_.releases();
  ASSERT_THAT(releases, SizeIs(1));
  EXPECT_EQ(releases[0].lease.trial.number.value, 0);
  EXPECT_EQ(releases[0].reason, ReleaseReason::kPreempted);
  EXPECT_EQ(releases[0].note, "ordered by the server");
  ASSERT_THAT(coordinator_.results(), SizeIs(1)) << "of the next trial";
  EXPECT_EQ(coordinator_.results()[0].lease.trial.number.value, 1);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints/s/000000")) << "for its next attempt";
}

TEST_F(AgentStopTest, CheckpointsGoWithTheEndOfTheirTrialOnly) {
  coordinator_.SetStateAfterFinish(1, TrialState::kQueued);
  Add(0);
  Add(1);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoints/s/000000"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints/s/000001"));
}

TEST_F(AgentStopTest, ADrainWhileWaitingForWorkEndsAtOnce) {
  coordinator_.NeverFinish();
  std::thread signaller([this] {
    EXPECT_TRUE(coordinator_.AwaitAcquires(1));
    stop_.Raise();
  });
  EXPECT_EQ(Run().code, ExitCode::kTryAgain);
  signaller.join();
}

TEST_F(AgentStopTest, ASecondSignalDoesNotWaitForTheTrainer) {
  options_.attempt.stop_grace = absl::Hours(1);
  coordinator_.OnReport([this](const AttemptReport&) {
    stop_.Raise();
    stop_.Raise();
  });
  Add(0, {{"fake.fault", std::string("hang")}, {"fake.fault_step", int64_t{2}}});
  EXPECT_EQ(Run().code, ExitCode::kKilled);
  EXPECT_THAT(coordinator_.results(), IsEmpty());
}

}  // namespace
}  // namespace hpo::agent
