#include "worker/agent/loop/agent_loop.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "common/files/read_file.h"
#include "common/protocol/refusal.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/fakes/full_disk.h"
#include "tests/worker/agent/agent_loop_fixture.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What is logged while it lives.
class CapturedLog {
 public:
  CapturedLog() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

// ---- A trial from start to end ----

TEST_F(AgentLoopTest, RunsTrialsUntilEveryStudyIsFinished) {
  Add(0, {{"train.lr", 3e-5}});
  Add(1);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kDone) << result.status;
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0].lease.trial.number.value, 0);
  EXPECT_EQ(results[1].lease.trial.number.value, 1);
  const auto* completed = std::get_if<Completed>(&results[0].outcome);
  ASSERT_NE(completed, nullptr);
  EXPECT_GT(completed->metrics.at("macro_f1"), 0.8);
  EXPECT_EQ(results[0].final_plan, (MemoryPlan{.effective_batch = 32, .micro_batch = 16}));
  EXPECT_EQ(results[0].memory.limit, MiB(900));
  EXPECT_EQ(NumOwed(), 0u);
}

TEST_F(AgentLoopTest, EveryMeasurementIsToldOnce) {
  Add(0, {{"fake.measurements", int64_t{5}}});
  Run();
  const std::vector<int64_t> steps = StepsTold();
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(AgentLoopTest, TellsTheServerWhatItsTrainerCanDo) {
  Run();
  ASSERT_THAT(coordinator_.registrations(), SizeIs(1));
  EXPECT_EQ(coordinator_.registrations()[0].trainer, "fake_trainer");
  EXPECT_TRUE(coordinator_.registrations()[0].plans);
  EXPECT_EQ(coordinator_.registrations()[0].capacity, GiB(1));

  launcher_.environment_["HPO_FAKE_CAPABILITIES"] = "stop";
  Run();
  EXPECT_FALSE(coordinator_.registrations().back().plans);
}

TEST_F(AgentLoopTest, RegistersWithWhatWasMeasuredOfTheDevice) {
  const DeviceProfile measured{.kind = "cpu", .base = MiB(7), .source = "measured"};
  DeviceProfiles profiles(
      {.argv = {"/bin/sh", "-c", "echo '" + DeviceProfileToJson(measured).dump() + "'"},
       .environment = {},
       .log_path = (folder_ / "profile.log").string()},
      (folder_ / "profile.json").string());
  device_profiles_ = &profiles;
  Run();
  ASSERT_THAT(coordinator_.registrations(), SizeIs(1));
  EXPECT_EQ(coordinator_.registrations()[0].device.base, MiB(7));
  EXPECT_EQ(coordinator_.registrations()[0].device.name, "test");
}

TEST_F(AgentLoopTest, EachAttemptKeepsItsOwnOutput) {
  Add(0, {{"fake.say", std::string("from trial zero")}});
  Add(1, {{"fake.say", std::string("from trial one")}});
  Run();
  EXPECT_EQ(ReadFile((folder_ / "runs/s/000000-1/trainer.log").string()).value(),
            "from trial zero\n");
  EXPECT_EQ(ReadFile((folder_ / "runs/s/000001-1/trainer.log").string()).value(),
            "from trial one\n");
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0].log_tail, "from trial zero\n");
  EXPECT_EQ(results[1].log_tail, "from trial one\n");
}

TEST_F(AgentLoopTest, SaysWhyStudiesEndedAndFailsWithTheOneThatItServed) {
  const FinishedStudy failed{"s", "5 trials failed before one completed", true};
  const FinishedStudy over{"t", "its budget is used up", false};
  const std::pair<std::vector<FinishedStudy>, ExitCode> cases[] = {
      {{failed}, ExitCode::kStudyFailed},
      {{over}, ExitCode::kDone},
      {{failed, over}, ExitCode::kDone}};
  for (const auto& [finished, code] : cases) {
    const CapturedLog log;
    coordinator_.FinishWith(finished);
    EXPECT_EQ(Run().code, code) << finished.size();
    for (const FinishedStudy& study : finished) {
      EXPECT_THAT(log.text(),
                  HasSubstr(absl::StrCat("study ", study.study, " is finished: ", study.why)));
    }
  }
}

TEST_F(AgentLoopTest, ALogThatAFullDiskDoesNotTakeIsNotLeftInPart) {
  std::optional<FullDisk> full;
  coordinator_.StopFromStep(1);
  coordinator_.OnReport([&](const AttemptReport&) { full.emplace(100); });
  coordinator_.OnFinish([&](const FakeCoordinator::Finish&) {
    full.reset();
    return absl::OkStatus();
  });
  Add(0, {{"fake.say", std::string(5000, 'x')},
          {"fake.measurements", int64_t{100000}},
          {"fake.pace_ms", int64_t{1}}});
  const CapturedLog log;
  EXPECT_EQ(Run().code, ExitCode::kDone);
  const std::string copy = (folder_ / "runs/s/000000-1/trainer.log").string();
  EXPECT_FALSE(std::filesystem::exists(copy));
  EXPECT_THAT(log.text(), HasSubstr("trial #0: its part of the trainer's output is not kept: " +
                                    copy + ": File too large"));
}

TEST_F(AgentLoopTest, MaxTrialsEndsIt) {
  for (int i = 0; i < 3; ++i) Add(i);
  options_.max_trials = 2;
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_THAT(coordinator_.results(), SizeIs(2));
}

// ---- Out of memory ----

TEST_F(AgentLoopTest, AnOutOfMemoryIsAnOutcomeAndTheTrainerStaysWarm) {
  Add(0, {{"fake.oom_above", int64_t{1000}}, {"tok.max_length", int64_t{512}}});
  Add(1);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<OutOfMemory>(results[0].outcome));
  EXPECT_EQ(results[0].memory.num_ooms, 1);
  EXPECT_TRUE(std::holds_alternative<Completed>(results[1].outcome));
  EXPECT_THAT(launcher_.pids_, SizeIs(1));
}

TEST_F(AgentLoopTest, ASimpleTrainersOutOfMemoryIsCompletedByWhatTheAgentKnows) {
  launcher_.environment_["HPO_FAKE_CAPABILITIES"] = "stop";
  Add(0, {{"fake.fault", std::string("exit:20")}, {"fake.fault_step", int64_t{3}}});
  Run();
  const FinishRequest finish = coordinator_.results().at(0);
  const auto* oom = std::get_if<OutOfMemory>(&finish.outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_EQ(oom->limit, MiB(900));
  EXPECT_EQ(oom->plan, (MemoryPlan{.effective_batch = 32, .micro_batch = 16}));
  EXPECT_EQ(oom->step, 2);
  EXPECT_EQ(finish.memory.limit, MiB(900));
  EXPECT_EQ(finish.memory.live_peak, MiB(16));
}

// What context and libraries of a device hold is no part of a trainer's bytes, nor of the host's.
TEST_F(AgentLoopTest, AnOutOfMemoryOfTheDeviceIsToldWithWhatTheDeviceHolds) {
  capacity_.base_ = MiB(10);
  for (const std::string kind : {"CONFIGURATION", "HOST"}) {
    Add(0, {{"fake.oom_above", int64_t{1000}}, {"fake.oom_kind", kind}});
  }
  Run();
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  const auto& device = std::get<OutOfMemory>(results[0].outcome);
  EXPECT_EQ(device.needed, MiB(100));
  EXPECT_EQ(device.limit, MiB(900));
  const auto& host = std::get<OutOfMemory>(results[1].outcome);
  EXPECT_EQ(host.kind, OomKind::kHost);
  EXPECT_EQ(host.needed, MiB(90));
  EXPECT_EQ(host.limit, MiB(890));
}

TEST_F(AgentLoopTest, ARecoveredOutOfMemoryIsReportedWithItsNewPlan) {
  // Slow enough for reports before the result, which would carry them all.
  Add(0, {{"fake.oom_above", int64_t{1024}},
          {"tok.max_length", int64_t{256}},
          {"fake.recover", int64_t{1}},
          {"fake.pace_ms", int64_t{20}}});
  Run();
  const FinishRequest finish = coordinator_.results().at(0);
  EXPECT_TRUE(std::holds_alternative<Completed>(finish.outcome));
  EXPECT_EQ(finish.final_plan, (MemoryPlan{.effective_batch = 32, .micro_batch = 4}));
  EXPECT_EQ(finish.memory.num_ooms, 2);
  EXPECT_EQ(finish.memory.num_replans, 2);
  std::optional<MemoryPlan> last_plan;
  int64_t num_ooms = 0;
  for (const AttemptReport& report : coordinator_.reports()) {
    if (report.new_plan) last_plan = report.new_plan;
    num_ooms = report.num_ooms;
  }
  EXPECT_EQ(last_plan, finish.final_plan);
  EXPECT_EQ(num_ooms, 2);
}

TEST_F(AgentLoopTest, AtOneRowCheckpointingComesBeforeTheEndWhereTheStudyAllowsIt) {
  for (const bool allowed : {true, false}) {
    Assignment assignment = MakeAssignment(allowed ? 0 : 1, {{"fake.oom_above", int64_t{200}},
                                                             {"tok.max_length", int64_t{256}},
                                                             {"fake.recover", int64_t{1}}});
    assignment.task.memory.allow_checkpointing = allowed;
    coordinator_.AddAssignment(std::move(assignment));
  }
  Run();
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<Completed>(results[0].outcome));
  EXPECT_EQ(results[0].final_plan,
            (MemoryPlan{.effective_batch = 32, .micro_batch = 1, .checkpointing = true}));
  EXPECT_EQ(results[0].memory.num_ooms, 5);
  const auto* oom = std::get_if<OutOfMemory>(&results[1].outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_EQ(oom->plan, (MemoryPlan{.effective_batch = 32, .micro_batch = 1}));
}

TEST_F(AgentLoopTest, AKillThatTheKernelCountedIsHostMemory) {
  coordinator_.OnReport([this](const AttemptReport&) { ++oom_kills_; });
  Add(0, {{"fake.fault", std::string("kill")},
          {"fake.fault_step", int64_t{2}},
          {"fake.pace_ms", int64_t{1}}});
  Run();
  const TrialOutcome outcome = OnlyOutcome();
  // The count grew while the attempt ran only if its first report came in time.
  if (const auto* oom = std::get_if<OutOfMemory>(&outcome)) {
    EXPECT_EQ(oom->kind, OomKind::kHost);
  } else {
    EXPECT_THAT(coordinator_.reports(), IsEmpty());
  }
}

TEST_F(AgentLoopTest, ATrialThatNoLongerFitsIsRejectedWithItsNeed) {
  Assignment big = MakeAssignment(0);
  big.task.predicted = MiB(480);
  big.required = MiB(600);  // with its margin
  coordinator_.AddAssignment(big);
  Add(1);
  capacity_.available_ = MiB(500).count;
  EXPECT_EQ(Run().code, ExitCode::kDone);
  const std::vector<TrialRelease> releases = coordinator_.releases();
  ASSERT_THAT(releases, SizeIs(1));
  EXPECT_EQ(releases[0].lease, big.lease);
  EXPECT_EQ(releases[0].reason, ReleaseReason::kRejected);
  EXPECT_EQ(releases[0].needed, MiB(600));
  EXPECT_THAT(coordinator_.results(), SizeIs(1));
  EXPECT_EQ(coordinator_.capacities().front(), MiB(500));
}

TEST_F(AgentLoopTest, WhatIsFreeWhenTheTrialComesCounts) {
  Add(0);
  capacity_.reads_before_drop_ = 2;  // registering and asking
  capacity_.dropped_ = MiB(101).count;
  Run();
  const std::vector<TrialRelease> releases = coordinator_.releases();
  ASSERT_THAT(releases, SizeIs(1));
  EXPECT_EQ(releases[0].needed, MiB(103));
  EXPECT_THAT(releases[0].note, HasSubstr("101.00 MiB are free now"));
  EXPECT_THAT(coordinator_.results(), IsEmpty());
}

TEST_F(AgentLoopTest, WithoutAdmissionItRunsWhateverTheEstimateSays) {
  Assignment demonstration = MakeAssignment(0);
  demonstration.required = GiB(100);
  demonstration.task.admission = false;
  coordinator_.AddAssignment(demonstration);
  Assignment unmanaged = MakeAssignment(1);
  unmanaged.required = GiB(100);
  unmanaged.task.memory.policy = MemoryPolicy::kOff;
  coordinator_.AddAssignment(unmanaged);
  Run();
  EXPECT_THAT(coordinator_.releases(), IsEmpty());
  EXPECT_THAT(coordinator_.results(), SizeIs(2));
}

// ---- Warm trainers ----

TEST_F(AgentLoopTest, OneTrainerServesManyAttempts) {
  for (int i = 0; i < 5; ++i) Add(i);
  Run();
  EXPECT_THAT(coordinator_.results(), SizeIs(5));
  EXPECT_THAT(launcher_.pids_, SizeIs(1));
}

TEST_F(AgentLoopTest, ATrainerIsReplacedAfterItsShare) {
  for (int i = 0; i < 5; ++i) Add(i);
  slot_options_.max_attempts = 2;
  Run();
  EXPECT_THAT(coordinator_.results(), SizeIs(5));
  EXPECT_THAT(launcher_.pids_, SizeIs(3));
}

TEST_F(AgentLoopTest, ATrainerThatIsNotCleanIsReplaced) {
  Add(0, {{"fake.clean", int64_t{0}}});
  Add(1);
  Run();
  EXPECT_THAT(coordinator_.results(), SizeIs(2));
  EXPECT_THAT(launcher_.pids_, SizeIs(2));
}

TEST_F(AgentLoopTest, ATrainerWhoseHostMemoryGrowsIsReplacedAndSaysSo) {
  for (int64_t trial = 0; trial < 11; ++trial) Add(trial, {{"fake.leak_mib", int64_t{12}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_THAT(launcher_.pids_, SizeIs(2)) << "two attempts to settle, eight that grow";
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(11));
  EXPECT_EQ(results[8].memory.growth, Bytes{});
  EXPECT_EQ(results[10].memory.growth, Bytes{});
  const FinishRequest& grown = results[9];
  EXPECT_GE(grown.memory.growth, MiB(8 * 12 - 2));
  EXPECT_EQ(grown.memory.growth_stage, "host memory, over several attempts");
  const MemoryRecord& record = grown.memory_records.back();
  EXPECT_EQ(record.stage, "Growth");
  EXPECT_EQ(record.growth, grown.memory.growth);
  EXPECT_EQ(record.allocated, MiB(1)) << "as it was last";
}

TEST_F(AgentLoopTest, ATrainerWithoutReuseServesOneAttempt) {
  launcher_.environment_["HPO_FAKE_CAPABILITIES"] = "stop";
  for (int i = 0; i < 3; ++i) Add(i);
  Run();
  EXPECT_THAT(coordinator_.results(), SizeIs(3));
  EXPECT_THAT(launcher_.pids_, SizeIs(3));
}

// ---- Trainers that end badly: the worker goes on ----

struct BadEnd {
  std::string fault;
  FailureClass failure_class;
  std::string message;
};

class BadEndTest : public AgentLoopTest, public ::testing::WithParamInterface<BadEnd> {};

TEST_P(BadEndTest, EndsTheAttemptWithItsClassAndTheNextTrialRuns) {
  options_.attempt.exit_grace = absl::Milliseconds(20);
  Add(0, {{"fake.fault", GetParam().fault}, {"fake.fault_step", int64_t{2}}});
  Add(1);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  const auto* failed = std::get_if<Failed>(&results[0].outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->failure_class, GetParam().failure_class);
  EXPECT_THAT(failed->message, HasSubstr(GetParam().message));
  EXPECT_TRUE(std::holds_alternative<Completed>(results[1].outcome));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadEndTest,
    ::testing::Values(BadEnd{"kill", FailureClass::kTrainerKilled, "SIGKILL"},
                      BadEnd{"segv", FailureClass::kTrainerCrashed, "SIGSEGV"},
                      BadEnd{"abort", FailureClass::kTrainerCrashed, "SIGABRT"},
                      BadEnd{"exit:23", FailureClass::kBadData, "status 23"},
                      BadEnd{"garbage", FailureClass::kProtocol, "this is not JSON"},
                      BadEnd{"torn", FailureClass::kTrainerCrashed, "status 3"},
                      BadEnd{"close", FailureClass::kProtocol, "closed file descriptor 3"},
                      BadEnd{"no_result", FailureClass::kProtocol, "without a result"},
                      BadEnd{"diverged", FailureClass::kDiverged, "loss is nan"}),
    [](const auto& test) {
      std::string name = test.param.fault;
      std::replace(name.begin(), name.end(), ':', '_');
      return name;
    });

TEST_F(AgentLoopTest, KillMinusNineFromOutsideEndsTheAttemptOnly) {
  coordinator_.OnReport([this](const AttemptReport& report) {
    if (report.lease.trial.number.value == 0) kill(launcher_.pids_.back(), SIGKILL);
  });
  Add(0, {{"fake.measurements", int64_t{100000}}, {"fake.pace_ms", int64_t{1}}});
  Add(1);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(std::get<Failed>(results[0].outcome).failure_class, FailureClass::kTrainerKilled);
  EXPECT_TRUE(std::holds_alternative<Completed>(results[1].outcome));
}

TEST_F(AgentLoopTest, ATrainerThatSigkillDoesNotEndIsWaitedForBeforeTheNextTrial) {
  options_.attempt.exit_grace = absl::Milliseconds(20);
  const std::string hold = (folder_ / "hold").string();
  ASSERT_EQ(mkfifo(hold.c_str(), 0600), 0);
  Add(0, {{"fake.fault", std::string("undying")}, {"fake.fault_hold", hold}});
  Add(1);
  size_t num_launched = 0;
  std::thread user([&] {
    EXPECT_TRUE(coordinator_.AwaitNotice("has not ended since it was killed"));
    num_launched = launcher_.pids_.size();
    UniqueFd(open(hold.c_str(), O_WRONLY));
  });
  EXPECT_EQ(Run().code, ExitCode::kDone);
  user.join();
  EXPECT_EQ(num_launched, 1U);
  EXPECT_THAT(coordinator_.releases(), IsEmpty());
  const std::vector<FinishRequest> results = coordinator_.results();
  ASSERT_THAT(results, SizeIs(2));
  const auto& failed = std::get<Failed>(results[0].outcome);
  EXPECT_EQ(failed.failure_class, FailureClass::kTrainerKilled);
  EXPECT_THAT(failed.message,
              HasSubstr(absl::StrCat("(pid ", launcher_.pids_[0], ") did not end")));
  EXPECT_TRUE(std::holds_alternative<Completed>(results[1].outcome));
  EXPECT_EQ(kill(launcher_.pids_[0], 0), -1) << "it was not reaped";
}

TEST_F(AgentLoopTest, TheTrainersLastWordsAreInTheFailure) {
  Add(0, {{"fake.fault", std::string("exit:24")}, {"fake.say", std::string("no vocab.txt")}});
  Run();
  EXPECT_THAT(std::get<Failed>(OnlyOutcome()).message, HasSubstr("no vocab.txt"));
}

// ---- Programs that are no trainers ----

TEST_F(AgentLoopTest, AProgramWithoutAHelloIsAConfigurationError) {
  launcher_.environment_["HPO_FAKE_FAULT"] = "no_hello";
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kConfiguration);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("exited with status 3"));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("no hello today"));
  EXPECT_THAT(coordinator_.registrations(), IsEmpty());
}

TEST_F(AgentLoopTest, WhatCameInsteadOfAHelloIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"nonsense", "began with 'nonsense': expected one hello line, got none: "},
      {R"({"type": "progress", "step": 1})", "expected one hello line, got another message"}};
  for (const auto& [line, message] : cases) {
    launcher_.argv_ = {"/bin/sh", "-c", absl::StrCat("echo '", line, "' >&3; exec sleep 60")};
    const AgentResult result = Run();
    EXPECT_EQ(result.code, ExitCode::kConfiguration) << line;
    EXPECT_THAT(std::string(result.status.message()), HasSubstr(message));
  }
}

TEST_F(AgentLoopTest, ATrainerThatIsKilledAtItsStartIsStartedAgain) {
  const std::string killed = (folder_ / "killed").string();
  launcher_.argv_ = {"/bin/sh", "-c",
                     absl::StrCat("test -e ", killed, " || { touch ", killed,
                                  "; kill -9 $$; }; exec ", HPO_FAKE_TRAINER)};
  Add(0);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_THAT(coordinator_.results(), SizeIs(1));

  launcher_.argv_ = {"/bin/sh", "-c", "kill -9 $$"};
  launcher_.pids_.clear();
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kUnhealthy) << result.status;
  EXPECT_THAT(launcher_.pids_, SizeIs(3));
}

TEST_F(AgentLoopTest, AMachineThatCannotStartATrainerAtFirstIsWaitedFor) {
  launcher_.refusals_.assign(10, absl::UnavailableError("log file: No space left on device"));
  Add(0);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kDone) << result.status;
  EXPECT_THAT(coordinator_.results(), SizeIs(1));
}

TEST_F(AgentLoopTest, AMachineThatCannotStartATrainerLaterCostsNoTrialARetry) {
  launcher_.refusals_.assign(5, absl::UnavailableError("log file: No space left on device"));
  launcher_.refused_from_ = 1;
  Add(0, {{"fake.fault", std::string("exit:23")}});
  for (int trial = 1; trial <= 6; ++trial) Add(trial);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kDone) << result.status;
  EXPECT_THAT(coordinator_.results(), SizeIs(2));
  ASSERT_THAT(coordinator_.releases(), SizeIs(5));
  EXPECT_EQ(coordinator_.releases().back().reason, ReleaseReason::kPreempted);
  EXPECT_THAT(coordinator_.releases().back().note, HasSubstr("No space left"));
}

TEST_F(AgentLoopTest, ASilentProgramIsGivenUp) {
  launcher_.environment_["HPO_FAKE_FAULT"] = "silent";
  slot_options_.hello_timeout = absl::Milliseconds(30);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kConfiguration);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("said nothing"));
}

TEST_F(AgentLoopTest, AProgramWithoutPlaceholdersIsToldWhatIsExpected) {
  launcher_.argv_ = {"/bin/sh", "-c", "for i in 1 2 3 4 5; do echo epoch $i; done"};
  slot_options_.is_own_program = true;
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kConfiguration);
  const std::string message(result.status.message());
  EXPECT_THAT(message, HasSubstr("exited with status 0 before its hello line; it has to speak the "
                                 "trainer protocol (docs/TRAINER_PROTOCOL.md)"));
  EXPECT_THAT(message, HasSubstr("{name} or {args}, it runs as an ordinary program. Its last "
                                 "output: epoch 3 | epoch 4 | epoch 5"));
}

TEST_F(AgentLoopTest, AnotherProtocolVersionIsRefused) {
  launcher_.environment_["HPO_FAKE_FAULT"] = "version:9";
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kConfiguration);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("version 9: expected 1"));
}

// ---- A server that goes away ----

TEST_F(AgentLoopTest, AResultOutlivesAServerThatIsAway) {
  coordinator_.OnFinish([this](const FakeCoordinator::Finish&) {
    if (coordinator_.num_finish_calls() == 1) coordinator_.SetAway(true);
    return absl::OkStatus();
  });
  std::thread server([this] {
    EXPECT_TRUE(coordinator_.AwaitFinishAnswers(3));
    EXPECT_EQ(NumOwed(), 1u);
    coordinator_.SetAway(false);
  });
  Add(0);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  server.join();
  EXPECT_THAT(coordinator_.stored(), SizeIs(1));
  EXPECT_GE(coordinator_.num_finish_calls(), 4);
  EXPECT_EQ(NumOwed(), 0u);
}

TEST_F(AgentLoopTest, AnAnswerThatIsLostDoesNotDoubleTheResult) {
  Add(0);
  std::vector<std::string> ids;
  coordinator_.OnFinish([&ids](const FakeCoordinator::Finish& finish) {
    ids.push_back(finish.request_id);
    return ids.size() < 3 ? absl::DeadlineExceededError("lost") : absl::OkStatus();
  });
  EXPECT_EQ(Run().code, ExitCode::kDone);
  ASSERT_THAT(ids, SizeIs(3));
  EXPECT_THAT(ids, ::testing::Each(ids[0]));
  EXPECT_THAT(coordinator_.stored(), SizeIs(1));
}

TEST_F(AgentLoopTest, WhatIsOwedIsToldByTheNextProcess) {
  coordinator_.OnFinish([this](const FakeCoordinator::Finish&) {
    coordinator_.SetAway(true);
    if (!stop_.raised()) stop_.Raise();
    return absl::OkStatus();
  });
  Add(0);
  {
    const CapturedLog log;
    EXPECT_EQ(Run().code, ExitCode::kTryAgain);
    EXPECT_THAT(log.text(), HasSubstr("waiting for the server"));
  }
  EXPECT_EQ(NumOwed(), 1u);
  const std::string owed = Outbox::Open((folder_ / "outbox").string())->pending()[0].request_id;

  coordinator_.OnFinish(nullptr);
  coordinator_.SetAway(false);
  StopSignal fresh;
  EXPECT_EQ(Run(fresh).code, ExitCode::kDone);
  ASSERT_THAT(coordinator_.stored(), SizeIs(1));
  EXPECT_EQ(coordinator_.stored().begin()->first, owed);
  EXPECT_EQ(NumOwed(), 0u);
}

TEST_F(AgentLoopTest, TrainingGoesOnWhileTheServerIsAway) {
  bool left = false;
  coordinator_.OnReport([this, &left](const AttemptReport&) {
    if (!std::exchange(left, true)) coordinator_.SetAway(true);
  });
  std::thread server([this] {
    EXPECT_TRUE(coordinator_.AwaitRefusals(3));
    coordinator_.SetAway(false);
  });
  Add(0, {{"fake.measurements", int64_t{200}}, {"fake.pace_ms", int64_t{1}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  server.join();
  EXPECT_TRUE(std::holds_alternative<Completed>(OnlyOutcome()));
  const std::vector<int64_t> steps = StepsTold();
  ASSERT_THAT(steps, SizeIs(200));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

TEST_F(AgentLoopTest, ARestartedServerGetsTheWorkerBackInTheMiddleOfATrial) {
  bool forgot = false;
  coordinator_.OnReport([this, &forgot](const AttemptReport&) {
    if (!std::exchange(forgot, true)) coordinator_.ForgetSessions();
  });
  Add(0, {{"fake.measurements", int64_t{20}}, {"fake.pace_ms", int64_t{1}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_TRUE(std::holds_alternative<Completed>(OnlyOutcome()));
  EXPECT_EQ(coordinator_.registrations().size(), 2u);
  EXPECT_EQ(coordinator_.registrations()[0].instance_key,
            coordinator_.registrations()[1].instance_key);
}

// ckpt_zombie.py of issue 21: a paused worker comes back with a failure.
TEST_F(AgentLoopTest, CheckpointsGoOnlyWhenTheTrialIsOver) {
  const TrialState states[] = {TrialState::kQueued, TrialState::kRunning, TrialState::kFailed};
  for (int64_t trial = 0; trial < 3; ++trial) {
    Add(trial);
    coordinator_.SetStateAfterFinish(trial, states[trial]);
  }
  Run();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints/s/000000"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints/s/000001"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoints/s/000002"));
}

TEST_F(AgentLoopTest, AStudyThatNamesFilesOutsideOfTheDataFolderFails) {
  Assignment assignment = MakeAssignment(0);
  assignment.task.trainer.train = "/etc/passwd";
  coordinator_.AddAssignment(assignment);
  Run();
  const auto failed = std::get<Failed>(OnlyOutcome());
  EXPECT_EQ(failed.failure_class, FailureClass::kBadConfiguration);
  EXPECT_THAT(failed.message, HasSubstr("/etc/passwd: expected a path below --data"));
}

TEST_F(AgentLoopTest, ANameThatAnotherHasEndsTheWorkerWithAStatusOfItsOwn) {
  coordinator_.SetRegisterStatus(
      WithRefusal(absl::AlreadyExistsError("give this one its own --name"),
                  {RefusalReason::kNameTaken, "database"}));
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kNameTaken);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("--name"));
}

TEST_F(AgentLoopTest, AProcessNamesTheOneBeforeItInItsStateFolder) {
  options_.instance_file = (folder_ / "instance").string();
  for (int process = 0; process < 2; ++process) {
    Add(process);
    EXPECT_EQ(Run().code, ExitCode::kDone);
  }
  const std::vector<WorkerFacts> registered = coordinator_.registrations();
  ASSERT_THAT(registered, SizeIs(2));
  EXPECT_EQ(coordinator_.predecessors()[0], "");
  EXPECT_EQ(coordinator_.predecessors()[1], registered[0].instance_key);
  EXPECT_EQ(coordinator_.num_goodbyes(), 2);
}

TEST_F(AgentLoopTest, AResultThatNobodyWantsIsDropped) {
  Add(0, {{"fake.best", int64_t{1}}, {"train.lr", 1e-6}});
  Add(1, {{"fake.best", int64_t{1}}});
  coordinator_.OnFinish([](const FakeCoordinator::Finish& finish) {
    return finish.request.lease.trial.number.value == 0
               ? absl::OkStatus()
               : WithRefusal(absl::AbortedError("attempt 2 has won"), {});
  });
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_EQ(coordinator_.num_finish_calls(), 2);
  EXPECT_EQ(NumOwed(), 0u);
  EXPECT_TRUE(HasBest(0)) << "of the results that count the best";
  EXPECT_FALSE(HasBest(1));
}

TEST_F(AgentLoopTest, AModelTakesItsPlaceWhenTheServerIsBack) {
  coordinator_.OnFinish([this](const FakeCoordinator::Finish&) {
    return coordinator_.num_finish_calls() < 3 ? absl::UnavailableError("away") : absl::OkStatus();
  });
  Add(0, {{"fake.best", int64_t{1}}, {"train.lr", 1e-6}});
  Add(1, {{"fake.best", int64_t{1}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_FALSE(HasBest(0));
  EXPECT_TRUE(HasBest(1));
}

TEST_F(AgentLoopTest, WhatAKilledWorkerLeftInTheMiddleOfAnAttemptGoes) {
  const std::filesystem::path running = folder_ / "runs/.running";
  std::string begun;
  coordinator_.OnReport(
      [&](const AttemptReport&) { begun = ReadFile(running.string()).value_or(""); });
  Add(0, {{"fake.measurements", int64_t{20}}, {"fake.pace_ms", int64_t{1}}});
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_EQ(begun, (folder_ / "runs/s/000000-1").string());
  EXPECT_FALSE(std::filesystem::exists(running));

  const std::filesystem::path left = folder_ / "runs/s/000001-1/best";
  std::filesystem::create_directories(left);
  std::ofstream(left / "model.safetensors") << "weights";
  std::ofstream(running) << left.parent_path().string();
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_FALSE(HasBest(1));
}

// ---- Starting ----

TEST_F(AgentLoopTest, WaitsForAServerThatIsNotThereYet) {
  coordinator_.SetAway(true);
  std::thread server([this] {
    EXPECT_TRUE(coordinator_.AwaitRefusals(3));
    coordinator_.SetAway(false);
  });
  Add(0);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  server.join();
  EXPECT_THAT(coordinator_.results(), SizeIs(1));
}

TEST_F(AgentLoopTest, GivesUpOnAServerThatNeverComes) {
  coordinator_.SetAway(true);
  options_.connect_timeout = absl::Milliseconds(20);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kTryAgain);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("not registered with fake"));
}

// Each code once, between two trials: a full disk, a broken group commit, a proxy.
TEST_F(AgentLoopTest, NoCodeOfAnAcquireEndsIt) {
  std::vector<absl::Status> failures;
  for (int code = 1; code <= 16; ++code) {
    const absl::Status failure(static_cast<absl::StatusCode>(code), "failed");
    if (absl::IsPermissionDenied(failure) || absl::IsUnauthenticated(failure)) continue;
    failures.push_back(failure);
  }
  coordinator_.FailAcquires(failures);
  Add(0);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kDone) << result.status;
  EXPECT_THAT(coordinator_.results(), SizeIs(1));
  EXPECT_GT(coordinator_.capacities().size(), failures.size());
}

TEST_F(AgentLoopTest, AWrongTokenEndsIt) {
  coordinator_.FailAcquires({absl::UnauthenticatedError("no token")});
  EXPECT_EQ(Run().code, ExitCode::kConfiguration);
}

TEST_F(AgentLoopTest, NoCodeOfARegistrationEndsItButAConfigurationError) {
  options_.connect_timeout = absl::Milliseconds(5);
  for (int code = 1; code <= 16; ++code) {
    const absl::Status failure(static_cast<absl::StatusCode>(code), "failed");
    coordinator_.SetRegisterStatus(failure);
    const bool configuration = absl::IsInvalidArgument(failure) ||
                               absl::IsPermissionDenied(failure) ||
                               absl::IsUnauthenticated(failure);
    EXPECT_EQ(Run().code, configuration ? ExitCode::kConfiguration : ExitCode::kTryAgain)
        << failure;
  }
}

TEST_F(AgentLoopTest, AResultThatIsRefusedForNowKeepsTheWorker) {
  coordinator_.OnFinish([this](const FakeCoordinator::Finish&) {
    return coordinator_.num_finish_calls() < 4 ? absl::FailedPreconditionError("cannot open")
                                               : absl::OkStatus();
  });
  options_.courier.first_retry = absl::Milliseconds(1);
  Add(0);
  EXPECT_EQ(Run().code, ExitCode::kDone);
  EXPECT_THAT(coordinator_.results(), SizeIs(1));
}

TEST_F(AgentLoopTest, ARefusedRegistrationIsAConfigurationError) {
  coordinator_.SetRegisterStatus(
      WithRefusal(absl::FailedPreconditionError("train.jsonl: digest differs"),
                  {RefusalReason::kConfiguration, ""}));
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kConfiguration);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("digest differs"));
}

TEST_F(AgentLoopTest, WithoutTheDataOfAnyStudyItSaysWhichFileIsMissing) {
  coordinator_.SetStudies({{"criteria", "/nowhere/train.jsonl", "/nowhere/valid.jsonl"}});
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kBlocked);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("/nowhere/train.jsonl"));
}

TEST_F(AgentLoopTest, DataThatCannotBeReadForNowAreMeasuredAgain) {
  coordinator_.NeverFinish();
  const std::filesystem::path train = folder_ / "train.jsonl";
  std::filesystem::create_symlink("/proc/self/mem", train);  // a read gives EIO
  train_file_ = train.string();
  options_.acquire_wait = absl::Milliseconds(10);
  coordinator_.SetStudies({{.study = "criteria", .train = "train.jsonl", .validation = ""}});
  std::thread disk([&] {
    EXPECT_TRUE(coordinator_.AwaitAcquires(2));
    EXPECT_THAT(coordinator_.registrations().back().data_sets, IsEmpty());
    std::ofstream(folder_ / "whole.jsonl") << R"({"text": "a b", "label": "yes"})"
                                           << "\n";
    std::filesystem::rename(folder_ / "whole.jsonl", train);
    EXPECT_TRUE(coordinator_.AwaitDataSets());
    stop_.Raise();
  });
  const AgentResult result = Run();
  disk.join();
  EXPECT_EQ(result.code, ExitCode::kTryAgain) << result.status;
  ASSERT_THAT(coordinator_.registrations().back().data_sets, SizeIs(1));
  EXPECT_EQ(coordinator_.registrations().back().data_sets[0].rows, 1);
}

TEST_F(AgentLoopTest, ACardThatDoesNotAnswerIsWaitedFor) {
  capacity_.num_silent_reads_ = 10;
  Add(0);
  const AgentResult result = Run();
  EXPECT_EQ(result.code, ExitCode::kDone) << result.status;
  EXPECT_THAT(coordinator_.results(), SizeIs(1));
}

TEST_F(AgentLoopTest, NewStudiesMakeItRegisterAgain) {
  coordinator_.NeverFinish();
  std::ofstream(folder_ / "train.jsonl") << R"({"text": "a b", "label": "yes"})"
                                         << "\n";
  std::thread server([this] {
    EXPECT_TRUE(coordinator_.AwaitAcquires(2));
    const std::string file = (folder_ / "train.jsonl").string();
    coordinator_.SetStudies({{"new", file, file}});
    EXPECT_TRUE(coordinator_.AwaitAcquires(4));
    stop_.Raise();
  });
  Run();
  server.join();
  // What there is to wait for is told at once, after each registration.
  const std::vector<absl::Duration> waits = coordinator_.waits();
  EXPECT_EQ(waits[0], absl::ZeroDuration());
  EXPECT_GT(waits[1], absl::ZeroDuration());
  EXPECT_EQ(waits[2], absl::ZeroDuration());
  EXPECT_GT(waits[3], absl::ZeroDuration());
  ASSERT_THAT(coordinator_.registrations(), SizeIs(2));
  ASSERT_THAT(coordinator_.registrations()[1].data_sets, SizeIs(1));
  EXPECT_EQ(coordinator_.registrations()[1].data_sets[0].rows, 1);
}

// Measures at once.
class QuickDryRuns final : public DryRunner {
 public:
  std::optional<PreflightReport> Run(const Preflight& preflight, const StopWait&) override {
    return PreflightReport{.id = preflight.id};
  }
};

TEST_F(AgentLoopTest, DryRunsConfigurationsWhileItWaits) {
  coordinator_.NeverFinish();
  QuickDryRuns runner;
  PreflightServices preflight{.client = coordinator_, .runner = runner};
  preflight_ = &preflight;
  coordinator_.AddPreflight({.id = "p1"});
  std::thread server([this] {
    EXPECT_TRUE(coordinator_.AwaitPreflightReports(1));
    stop_.Raise();
  });
  Run();
  server.join();
  EXPECT_EQ(coordinator_.preflight_reports()[0].id, "p1");
  EXPECT_EQ(coordinator_.registrations()[0].preflight, PreflightAbility::kIfAsked);
}

}  // namespace
}  // namespace hpo::agent
