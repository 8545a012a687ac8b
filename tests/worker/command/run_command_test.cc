#include "worker/command/run_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Events final : public EventSink {
 public:
  void Send(const UpMessage& message) override { messages.push_back(message); }

  template <typename Message>
  std::vector<Message> Of() const {
    std::vector<Message> found;
    for (const UpMessage& message : messages) {
      if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
    }
    return found;
  }

  std::vector<UpMessage> messages;
};

class Stop final : public StopSource {
 public:
  std::optional<StopRequest> Poll() override {
    if (absl::Now() < at) return std::nullopt;
    return StopRequest{.reason = reason};
  }

  absl::Time at = absl::InfiniteFuture();
  std::string reason = "pruned";
};

class RunCommandTest : public testing::Test {
 protected:
  RunCommandTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                absl::StrCat("run_command_", getpid())) {
    std::filesystem::create_directories(folder_);
    job_.task.params = {{"lr", 0.5}};
    job_.task.objective = {.metric = "acc"};
    job_.output_dir = folder_.string();
  }
  ~RunCommandTest() override { std::filesystem::remove_all(folder_); }

  CommandEnd Run(const std::string& command, const std::string& metrics_file = "",
                 const std::vector<MetricPattern>& patterns = {}) {
    CommandOptions options{.command = CommandTemplate(command),
                           .patterns = patterns,
                           .metrics_file = CommandTemplate(metrics_file)};
    options.stop_grace = absl::Milliseconds(300);
    return RunCommand(options, job_, events_, stop_);
  }

  template <typename Outcome>
  static Outcome As(const CommandEnd& end) {
    const Outcome* const outcome =
        end.message.outcome ? std::get_if<Outcome>(&*end.message.outcome) : nullptr;
    if (outcome == nullptr) {
      ADD_FAILURE() << "another outcome: " << EncodeUp(end.message);
      return Outcome();
    }
    return *outcome;
  }

  std::filesystem::path folder_;
  TrainerJob job_;
  Events events_;
  Stop stop_;
};

TEST_F(RunCommandTest, ReportsWhatItPrintsAndEndsWithTheLast) {
  const CommandEnd end =
      Run(R"(echo '{"acc": 0.1}'; echo 'no metric' >&2; echo "{\"acc\": {lr}, \"step\": 7}")");
  EXPECT_THAT(As<Completed>(end).metrics, ElementsAre(Pair("acc", 0.5)));
  const std::vector<MeasurementMessage> measured = events_.Of<MeasurementMessage>();
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].measurement.metrics.at("acc"), 0.1);
  EXPECT_EQ(measured[1].measurement.step, 7);
  EXPECT_GT(end.message.memory.live_peak.count, 0);
}

TEST_F(RunCommandTest, ARankThatRunsOutOfMemoryIsNamedAndAllRunAgainSmaller) {
  job_.task.trainer.gpus = 2;
  job_.task.plan = {.effective_batch = 16, .micro_batch = 16};
  const std::string program = R"(if [ {micro_batch} -gt 4 ]; then
      echo "[rank1]: torch.OutOfMemoryError: CUDA out of memory."; exit 1; fi
      echo '{"acc": {gpus}{accumulation}}')";
  const CommandEnd end = Run(program);
  EXPECT_EQ(As<Completed>(end).metrics.at("acc"), 22.0);
  EXPECT_EQ(end.message.final_plan.micro_batch, 4);
  const std::vector<LogMessage> logs = events_.Of<LogMessage>();
  ASSERT_EQ(logs.size(), 1U);
  EXPECT_EQ(logs[0].text,
            "rank 1: torch.OutOfMemoryError: CUDA out of memory.; runs again with the micro-batch "
            "4");
}

TEST_F(RunCommandTest, RanksFindTheJobInTheirEnvironment) {
  const std::string program = R"(echo "{\"acc\": ${HPO_TRIAL_JOB:+1}0}" # {lr})";
  EXPECT_EQ(As<Completed>(Run(program)).metrics.at("acc"), 0.0) << "one GPU: a channel";
  job_.task.trainer.gpus = 2;
  EXPECT_EQ(As<Completed>(Run(program)).metrics.at("acc"), 10.0);
}

TEST_F(RunCommandTest, TakesMetricsFromAFileThatTheProgramHasWritten) {
  const std::string path = "{output_dir}/metrics.json";
  EXPECT_THAT(
      As<Completed>(Run(R"(echo '{"acc": 0.7}' > {output_dir}/metrics.json)", path)).metrics,
      ElementsAre(Pair("acc", 0.7)));
  EXPECT_THAT(As<Failed>(Run("true {lr}", path)).message, HasSubstr("which it has not written"));
}

TEST_F(RunCommandTest, SaysWhatIsWrongWithTheMetricsFile) {
  const std::string path = "{output_dir}/m.json";
  EXPECT_THAT(As<Failed>(Run("echo '[0.7]' > {output_dir}/m.json", path)).message,
              HasSubstr("m.json, got the string \"[0.7]"));
  EXPECT_THAT(As<Failed>(Run(R"(echo '{"loss": 1}' > {output_dir}/m.json)", path)).message,
              HasSubstr("m.json; got loss"));
  EXPECT_THAT(As<Failed>(Run("rm {output_dir}/m.json && mkdir {output_dir}/m.json", path)).message,
              HasSubstr("m.json: Is a directory"));
}

TEST_F(RunCommandTest, SaysWhichMetricsCameInstead) {
  const Failed failed = As<Failed>(Run(R"(echo '{"accuracy": 0.7, "loss": 1}' # {lr})"));
  EXPECT_EQ(failed.failure_class, FailureClass::kBadConfiguration);
  EXPECT_THAT(failed.message, HasSubstr("without the metric acc"));
  EXPECT_THAT(failed.message, HasSubstr("got accuracy, loss"));
}

TEST_F(RunCommandTest, AProgramThatFailsFailsTheTrialWithItsLastOutput) {
  const Failed failed = As<Failed>(Run("echo ValueError: bad {lr} >&2; exit 3"));
  EXPECT_THAT(failed.message, HasSubstr("status 3"));
  EXPECT_THAT(failed.message, HasSubstr("ValueError: bad 0.5"));
}

// It would train on for nothing, and is no crash that is worth another attempt.
TEST_F(RunCommandTest, APatternThatMatchesAPartOfANumberEndsTheProgram) {
  const absl::Time begin = absl::Now();
  const CommandEnd end =
      Run("echo acc: 1.8e-05; sleep 60 # {lr}", "", {*ParseMetricPattern("acc: ([0-9.]+)")});
  const Failed failed = As<Failed>(end);
  EXPECT_EQ(failed.failure_class, FailureClass::kBadConfiguration);
  EXPECT_THAT(failed.message, HasSubstr("matched '1.8', a part of the number 1.8e-05"));
  EXPECT_EQ(end.signal, 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST_F(RunCommandTest, TakesADictOfSeveralLinesThatEndsWithTheOutput) {
  const CommandEnd end = Run(R"(printf '{\n  "acc": {lr},\n  "per_class": [1, 2]\n}' # {lr})");
  EXPECT_THAT(As<Completed>(end).metrics, ElementsAre(Pair("acc", 0.5)));
}

// It would be the trial's result without a word.
TEST_F(RunCommandTest, AnEarlierValueIsNotTheResultWhereTheLastIsUnread) {
  const Failed unread =
      As<Failed>(Run(R"(echo '{"acc": 0.9}'; echo '{"acc": "high", "loss": 1}' # {lr})"));
  EXPECT_EQ(unread.failure_class, FailureClass::kBadConfiguration);
  EXPECT_THAT(unread.message,
              HasSubstr("expected a number as the metric acc, got \"high\", in the line "
                        "'{\"acc\": \"high\", \"loss\": 1}'; the value before it, 0.9, is not"));
  const Failed null = As<Failed>(Run(R"(echo '{"acc": 0.9}'; echo "{'acc': None}" # {lr})"));
  EXPECT_EQ(null.failure_class, FailureClass::kDiverged);
  EXPECT_THAT(null.message, HasSubstr("expected a finite number as the metric acc, got None"));
  EXPECT_THAT(
      As<Failed>(Run(R"(echo '{"acc": 0.9}'; echo "{'x': 1, 'm': (: }, 'acc': 3" # {lr})")).message,
      HasSubstr("the dict around it is not understood, in the line '{'x': 1"));
}

TEST_F(RunCommandTest, TakesALineOfMegabytes) {
  // What a program prints goes to our output too.
  const int output = dup(STDOUT_FILENO);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  const CommandEnd end =
      Run("echo '{\"acc\": 0.9}'; "
          "python3 -c 'print({\"list\": [0.123456] * 200000, \"acc\": 0.5})' # {lr}");
  dup2(output, STDOUT_FILENO);
  close(nowhere);
  close(output);
  EXPECT_THAT(As<Completed>(end).metrics, ElementsAre(Pair("acc", 0.5)));
}

TEST_F(RunCommandTest, SaysHowManyMetricsAreLeftOut) {
  const CommandEnd end =
      Run("python3 -c 'print({\"acc\": 0.5, **dict((str(i), i) for i in range(1200))})' # {lr}");
  EXPECT_LE(As<Completed>(end).metrics.size(), 1000U);
  const std::vector<LogMessage> logs = events_.Of<LogMessage>();
  ASSERT_EQ(logs.size(), 1U);
  EXPECT_THAT(logs[0].text, HasSubstr("metrics beyond the limits"));
}

TEST_F(RunCommandTest, AValueThatATrialHasNotFailsIt) {
  const Failed failed = As<Failed>(Run("true {lrr}"));
  EXPECT_EQ(failed.failure_class, FailureClass::kBadConfiguration);
  EXPECT_THAT(failed.message, HasSubstr("--trainer: {lrr}"));
}

// The kernel kills by SIGKILL for want of memory, and people do; another attempt may then end well.
TEST_F(RunCommandTest, GivesOnASigkill) {
  EXPECT_EQ(Run("kill -KILL $$ {lr}").signal, SIGKILL);
  // A shell that waits for it says 128 + signal.
  EXPECT_EQ(Run("sh -c 'kill -KILL $$'; exit $? {lr}").signal, SIGKILL);
  EXPECT_EQ(Run("exit 3 {lr}").signal, 0);
}

TEST_F(RunCommandTest, AnotherSignalIsAFailureOfTheProgramsOwn) {
  for (const char* name : {"SEGV", "ABRT", "TERM"}) {
    const CommandEnd end = Run(absl::StrCat("echo last words; kill -", name, " $$ {lr}"));
    EXPECT_EQ(end.signal, 0);
    const Failed failed = As<Failed>(end);
    EXPECT_EQ(failed.failure_class, FailureClass::kInternal);
    EXPECT_EQ(failed.message, absl::StrCat("the program was killed by SIG", name,
                                           "; its last output:\nlast words"));
  }
}

TEST_F(RunCommandTest, TheEnvironmentAndAFileHaveTheParameters) {
  EXPECT_THAT(As<Completed>(Run("echo \"{'acc': $HPO_PARAM_LR}\" # {lr}")).metrics,
              ElementsAre(Pair("acc", 0.5)));
  EXPECT_THAT(
      As<Completed>(Run(R"(test "$HPO_PARAMS" = '{"lr":0.5}' && echo '{"acc": 1}')")).metrics,
      ElementsAre(Pair("acc", 1.0)));
  for (const char* place : {"config", "config:json", "config:yaml"}) {
    const std::string program =
        "python3 -c \"import json, sys; print({'acc': json.load(open(sys.argv[1]))['lr']})\" ";
    EXPECT_THAT(As<Completed>(Run(absl::StrCat(program, "{", place, "}"))).metrics,
                ElementsAre(Pair("acc", 0.5)));
  }
}

TEST_F(RunCommandTest, OfAProgressBarTheLastStateIsInTheMessage) {
  const Failed failed =
      As<Failed>(Run(R"(printf 'begin\n 1%%\r 2%%\r 3%%\r\n'; printf '\033[31mbad\033[0m\007\n'; )"
                     "exit 1 # {lr}"));
  EXPECT_THAT(failed.message, testing::EndsWith("its last output:\nbegin\n 3%\nbad"));
}

TEST_F(RunCommandTest, MemoryThatRanOutIsItsOutcome) {
  const OutOfMemory oom =
      As<OutOfMemory>(Run("echo 'torch.OutOfMemoryError: CUDA out of memory.' {lr}; exit 1"));
  EXPECT_THAT(oom.message, HasSubstr("CUDA out of memory"));
  EXPECT_EQ(oom.kind, OomKind::kConfiguration);
  EXPECT_EQ(events_.Of<MemoryMessage>().size(), 1U);
  // One that went on and has a result met it and got over it.
  EXPECT_THAT(As<Completed>(Run("echo CUDA out of memory; echo '{\"acc\": 1}' # {lr}")).metrics,
              ElementsAre(Pair("acc", 1.0)));
}

TEST_F(RunCommandTest, RunsAgainSmallerWhereTheMicroBatchHasAPlace) {
  job_.task.plan = {.effective_batch = 32, .micro_batch = 32};
  const std::string command =
      "if [ {micro_batch} -gt 8 ]; then echo CUDA out of memory; exit 1; fi; "
      "echo \"{'acc': {micro_batch}, 'parts': {accumulation}}\"";
  const CommandEnd end = Run(command);
  EXPECT_THAT(As<Completed>(end).metrics, ElementsAre(Pair("acc", 8), Pair("parts", 4)));
  EXPECT_EQ(end.message.final_plan.micro_batch, 8);
  EXPECT_EQ(end.message.memory.num_ooms, 2);
  EXPECT_EQ(end.message.memory.num_replans, 2);
  std::vector<std::string> stages;
  for (const MemoryMessage& message : events_.Of<MemoryMessage>()) stages.push_back(message.stage);
  EXPECT_THAT(stages, ElementsAre("OOM Error", "replan", "OOM Error", "replan"));

  job_.task.memory.policy = MemoryPolicy::kStrict;
  As<OutOfMemory>(Run(command));
}

TEST_F(RunCommandTest, EndsWhatHoldsMoreHostMemoryThanItsLimit) {
  job_.task.limit = MiB(60);
  const OutOfMemory oom = As<OutOfMemory>(
      Run("python3 -c 'import time; x = bytearray(200 << 20); time.sleep(60)' {lr}"));
  EXPECT_GT(oom.peak, job_.task.limit);
  EXPECT_THAT(oom.message, HasSubstr("the trial's limit is 60.00 MiB"));
}

TEST_F(RunCommandTest, StopsWithWhatWasMeasured) {
  stop_.at = absl::Now() + absl::Milliseconds(500);
  const CommandEnd end = Run("echo '{\"acc\": 0.5, \"step\": 3}'; sleep 60 {lr}");
  const StoppedByPruner pruned = As<StoppedByPruner>(end);
  EXPECT_EQ(pruned.step, 3);
  EXPECT_THAT(pruned.metrics, ElementsAre(Pair("acc", 0.5)));
}

TEST_F(RunCommandTest, KillsWhatDoesNotStop) {
  stop_ = {};
  stop_.at = absl::Now();
  stop_.reason = "drain";
  const absl::Time begin = absl::Now();
  EXPECT_FALSE(Run("trap '' TERM; while :; do sleep 0.1; done # {lr}").message.outcome);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

// Its output goes to a file of its own, so that our pipe is closed while it runs.
TEST_F(RunCommandTest, WaitsIdlyForAProgramThatPrintsElsewhere) {
  const std::string file = (folder_ / "metrics.json").string();
  const std::clock_t before = std::clock();
  const CommandEnd end =
      Run(absl::StrCat("exec >/dev/null 2>&1; sleep 1; echo '{\"acc\": 0.5}' > ", file), file);
  const std::clock_t used = std::clock() - before;
  EXPECT_EQ(std::get<Completed>(*end.message.outcome).metrics.at("acc"), 0.5);
  EXPECT_LT(used, CLOCKS_PER_SEC / 4) << "of this process";
}

// A launcher's, in a session of their own; one without our mark; a daemon, whose parent has ended.
TEST_F(RunCommandTest, EndsWhateverTheProgramHasStarted) {
  const std::string pids = (folder_ / "pids").string();
  const std::string child = absl::StrCat(" sh -c 'echo $$ >> ", pids, "; exec sleep 300' & ");
  const std::string start = absl::StrCat("setsid", child, "setsid env -i", child, "( setsid setsid",
                                         child, "); while [ $(wc -l < ", pids,
                                         ") -lt 3 ]; do sleep 0.02; done; echo '{\"acc\": 1}'; ");
  for (const char* then : {"exit 0", "exit 3", "kill -9 $$", "sleep 300"}) {
    SCOPED_TRACE(then);
    std::ofstream(pids).close();
    const bool waits = then[0] == 's';
    stop_.at = waits ? absl::Now() + absl::Seconds(1) : absl::InfiniteFuture();
    Run(absl::StrCat(start, then, " # {lr}"));
    std::ifstream started(pids);
    int count = 0;
    for (pid_t pid = 0; started >> pid; ++count) {
      EXPECT_NE(kill(pid, 0), 0) << pid << " lives";
    }
    EXPECT_EQ(count, 3);
  }
}

// The worker is gone.
TEST_F(RunCommandTest, AnAbandonedProgramEndsSoon) {
  stop_.at = absl::Now() + absl::Milliseconds(200);
  stop_.reason = "lease lost";
  const absl::Time begin = absl::Now();
  EXPECT_FALSE(Run("trap '' TERM; sleep 300 & while :; do sleep 0.1; done # {lr}").message.outcome);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST_F(RunCommandTest, DoesNotWaitForProcessesThatTheProgramLeaves) {
  const absl::Time begin = absl::Now();
  EXPECT_THAT(As<Completed>(Run("sleep 60 & echo '{\"acc\": 0.5}' # {lr}")).metrics,
              ElementsAre(Pair("acc", 0.5)));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

}  // namespace
}  // namespace hpo::command
