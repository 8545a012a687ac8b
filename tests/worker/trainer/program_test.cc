// The program hpo-trainer itself, as a supervisor and as a person see it.
#include <ATen/Version.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/protocol/trainer_protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_paths.h"
#include "tests/worker/trainer/tiny_trial.h"

namespace hpo::trainer {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const std::string kProgram = ProgramPath("hpo-trainer");

struct CommandResult {
  int status = -1;
  std::string output;  // standard output
  std::string errors;  // standard error
};

std::string ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  ssize_t size = 0;
  while ((size = ::read(fd, chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<size_t>(size));
  }
  ::close(fd);
  return text;
}

int WaitFor(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Starts the program with `output`, `errors` as its 1 and 2 and, where >= 0, `protocol` as its 3.
pid_t Start(const std::vector<std::string>& arguments, int output, int errors, int protocol) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::dup2(output, 1);
  ::dup2(errors, 2);
  if (protocol >= 0 && protocol != 3) ::dup2(protocol, 3);
  if (protocol < 0) ::close(3);
  ::setenv("HPO_NUM_THREADS", "1", 1);
  ::setenv("HPO_TOKEN_CACHE", "none", 1);
  std::vector<char*> argv = {const_cast<char*>(kProgram.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(kProgram.c_str(), argv.data());
  ::_exit(127);
}

// Runs the program to its end. What it writes must fit a pipe.
CommandResult RunProgram(const std::vector<std::string>& arguments) {
  int output[2];
  int errors[2];
  EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(errors, O_CLOEXEC), 0);
  const pid_t pid = Start(arguments, output[1], errors[1], -1);
  ::close(output[1]);
  ::close(errors[1]);
  CommandResult result;
  result.output = ReadAll(output[0]);
  result.errors = ReadAll(errors[0]);
  result.status = WaitFor(pid);
  return result;
}

CommandResult RunJob(const TinyTrial& trial, const TrainerJob& job) {
  return RunProgram({"--log-level", "off", "--job", trial.Write("job.json", EncodeDown(job))});
}

// The messages a job wrote to standard output.
std::vector<UpMessage> Messages(const std::string& output) {
  std::vector<UpMessage> messages;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const auto message = DecodeUp(line);
    EXPECT_TRUE(message.ok()) << message.status() << ": " << line;
    if (message.ok()) messages.push_back(*message);
  }
  return messages;
}

TEST(TrainerProgram, RunsAJobFile) {
  const TinyTrial trial;
  const CommandResult result = RunJob(trial, trial.Job());
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.errors, "");
  const std::vector<UpMessage> messages = Messages(result.output);
  ASSERT_GE(messages.size(), 3u);
  const auto* hello = std::get_if<Hello>(&messages.front());
  ASSERT_NE(hello, nullptr);
  EXPECT_EQ(hello->version, kTrainerProtocolVersion);
  for (const char* capability : {"plan", "stop", "memory", "reuse"}) {
    EXPECT_TRUE(hello->Has(capability)) << capability;
  }
  EXPECT_THAT(hello->torch_build, HasSubstr(HPO_TORCH_VERSION));
  const auto* outcome = std::get_if<OutcomeMessage>(&messages.back());
  ASSERT_NE(outcome, nullptr);
  EXPECT_TRUE(outcome->clean);
  EXPECT_TRUE(std::holds_alternative<Completed>(outcome->outcome.value()));
}

TEST(TrainerProgram, KeepsTokensWhereItIsTold) {
  const TinyTrial trial;
  const std::string job = trial.Write("job.json", EncodeDown(trial.Job()));
  const std::string cache = trial.Path("cache");
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(RunProgram({"--log-level", "off", "--token-cache", cache, "--job", job}).status, 0);
    const std::filesystem::directory_iterator files(cache);
    EXPECT_EQ(std::distance(begin(files), end(files)), 2);
  }
  const CommandResult refused =
      RunProgram({"--token-cache", cache, "--token-cache-size", "much", "--job", job});
  EXPECT_EQ(refused.status, 64);
  EXPECT_THAT(refused.errors, HasSubstr("--token-cache-size"));
}

TEST(TrainerProgram, TheExitStatusTellsTheOutcome) {
  const TinyTrial trial;
  TrainerJob out_of_memory = trial.Job();
  out_of_memory.task.limit = KiB(64);
  TrainerJob diverges = trial.Job();
  diverges.task.params["train.lr"] = 1e30;
  diverges.task.params["train.warmup_ratio"] = 0.0;
  TrainerJob bad_data = trial.Job();
  bad_data.task.trainer.train = "/nonexistent.jsonl";
  TrainerJob bad_model = trial.Job();
  bad_model.model_path = "/nonexistent";
  TrainerJob bad_configuration = trial.Job();
  bad_configuration.task.params["train.lr"] = std::string("high");
  const std::pair<TrainerJob, int> cases[] = {{out_of_memory, 20},
                                              {diverges, 22},
                                              {bad_data, 23},
                                              {bad_model, 24},
                                              {bad_configuration, 64}};
  for (const auto& [job, status] : cases) {
    SCOPED_TRACE(status);
    EXPECT_EQ(RunJob(trial, job).status, status);
  }
}

TEST(TrainerProgram, ACardThatCannotBeHadIsOneLine) {
  const TinyTrial trial;
  TrainerJob job = trial.Job();
  job.device = "cuda:77";
  const CommandResult result = RunJob(trial, job);
  EXPECT_EQ(result.status, 24);
  const std::vector<UpMessage> messages = Messages(result.output);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Hello>(messages.front()));
  const auto* outcome = std::get_if<OutcomeMessage>(&messages.back());
  ASSERT_TRUE(outcome != nullptr && outcome->outcome.has_value());
  EXPECT_EQ(std::get<Failed>(*outcome->outcome).failure_class, FailureClass::kBadConfiguration);
  // Without CUDA's libraries the loader's reason; with them, the driver's.
  EXPECT_THAT(result.errors,
              AnyOf(HasSubstr("cannot load torch's CUDA libraries"), HasSubstr("cuda:77")));
  EXPECT_EQ(result.errors.find('\n'), result.errors.size() - 1);
}

TEST(TrainerProgram, SaysWhatIsWrongWithItsCommandLine) {
  EXPECT_EQ(RunProgram({"--frobnicate"}).status, 64);
  const CommandResult missing = RunProgram({"--job", "/nonexistent.json"});
  EXPECT_EQ(missing.status, 64);
  EXPECT_THAT(missing.errors, HasSubstr("/nonexistent.json"));
  const CommandResult alone = RunProgram({});
  EXPECT_EQ(alone.status, 64);
  EXPECT_THAT(alone.errors, HasSubstr("--job FILE"));
  const CommandResult help = RunProgram({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("HPO_NUM_THREADS"));
  EXPECT_THAT(RunProgram({"--version"}).output, HasSubstr(HPO_TORCH_VERSION));
  EXPECT_THAT(RunProgram({"--list-parameters"}).output, HasSubstr("train.weight_decay"));
}

// The program as a supervisor holds it.
class ServedTrainer {
 public:
  ServedTrainer() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_ = Start({"--log-level", "off"}, nowhere, nowhere, fds[1]);
    ::close(fds[1]);
    ::close(nowhere);
    fd_ = fds[0];
  }
  ~ServedTrainer() {
    Hang();
    if (pid_ > 0) WaitFor(pid_);
  }
  ServedTrainer(const ServedTrainer&) = delete;
  ServedTrainer& operator=(const ServedTrainer&) = delete;

  void Signal(int number) { ASSERT_EQ(::kill(pid_, number), 0); }

  void Send(const DownMessage& message) {
    const std::string line = EncodeDown(message) + "\n";
    ASSERT_EQ(::write(fd_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }

  UpMessage Receive() {
    while (buffer_.find('\n') == std::string::npos) {
      std::array<char, 4096> chunk;
      const ssize_t size = ::read(fd_, chunk.data(), chunk.size());
      if (size <= 0) {
        ADD_FAILURE() << "the trainer closed the channel";
        return LogMessage{};
      }
      buffer_.append(chunk.data(), static_cast<size_t>(size));
    }
    const size_t end = buffer_.find('\n');
    const auto message = DecodeUp(absl::string_view(buffer_).substr(0, end));
    buffer_.erase(0, end + 1);
    EXPECT_TRUE(message.ok()) << message.status();
    return message.ok() ? *message : UpMessage{};
  }

  // The next message of one type; others before it are passed over.
  template <typename Message>
  Message ReceiveUntil() {
    while (!testing::Test::HasFailure()) {
      const UpMessage message = Receive();
      if (const auto* match = std::get_if<Message>(&message)) return *match;
    }
    return {};
  }

  void Hang() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  int ExitStatus() { return WaitFor(std::exchange(pid_, 0)); }

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  std::string buffer_;
};

TEST(TrainerProgram, ServesJobsOneAfterAnotherUntilTheShutdown) {
  const TinyTrial trial;
  ServedTrainer trainer;
  ASSERT_TRUE(std::holds_alternative<Hello>(trainer.Receive()));
  TrainerJob too_big = trial.Job();
  too_big.task.limit = KiB(64);
  for (const bool fits : {true, false, true}) {
    trainer.Send(fits ? trial.Job() : too_big);
    const auto outcome = trainer.ReceiveUntil<OutcomeMessage>();
    ASSERT_TRUE(outcome.outcome.has_value());
    EXPECT_EQ(std::holds_alternative<Completed>(*outcome.outcome), fits);
    EXPECT_TRUE(outcome.clean);
  }
  trainer.Send(ShutdownRequest{});
  EXPECT_EQ(trainer.ExitStatus(), 0);
}

// Slurm signals every process of a job step. What is to happen is the worker's to say.
TEST(TrainerProgram, LeavesSignalsToTheWorker) {
  const TinyTrial trial;
  ServedTrainer trainer;
  ASSERT_TRUE(std::holds_alternative<Hello>(trainer.Receive()));
  trainer.Signal(SIGTERM);
  trainer.Send(trial.Job());
  const auto outcome = trainer.ReceiveUntil<OutcomeMessage>();
  EXPECT_TRUE(std::holds_alternative<Completed>(outcome.outcome.value()));
  trainer.Send(ShutdownRequest{});
  EXPECT_EQ(trainer.ExitStatus(), 0);
}

TEST(TrainerProgram, StopsARunningAttemptAndTakesTheNext) {
  const TinyTrial trial;
  ServedTrainer trainer;
  TrainerJob endless = trial.Job();
  endless.task.trainer.epochs = 1000000;
  trainer.Send(endless);
  trainer.ReceiveUntil<MeasurementMessage>();
  trainer.Send(StopRequest{.reason = "pruned"});
  const auto stopped = trainer.ReceiveUntil<OutcomeMessage>();
  ASSERT_TRUE(stopped.outcome.has_value());
  EXPECT_TRUE(std::holds_alternative<StoppedByPruner>(*stopped.outcome));
  trainer.Send(trial.Job());
  const auto next = trainer.ReceiveUntil<OutcomeMessage>();
  EXPECT_TRUE(std::holds_alternative<Completed>(next.outcome.value()));
}

// Every program started meanwhile ends where torch's CUDA hooks are asked for too early
// (docs/adr/001-cuda-code-in-a-module.md).
class CudaHooksGuard {
 public:
  CudaHooksGuard() { ::setenv("LD_PRELOAD", HPO_CUDA_HOOKS_GUARD, 1); }
  ~CudaHooksGuard() { ::unsetenv("LD_PRELOAD"); }
  CudaHooksGuard(const CudaHooksGuard&) = delete;
  CudaHooksGuard& operator=(const CudaHooksGuard&) = delete;
};

TEST(TrainerProgram, NothingAsksForCudaBeforeTheModuleIsLoaded) {
  const TinyTrial trial;
  TrainerJob job = trial.Job();
  job.device = "cuda:0";
  const std::string job_file = trial.Write("job.json", EncodeDown(job));
  const std::vector<std::string> runs[] = {
      {"--profile-device", "--device", "cuda:0"},
      {"--memory-suite", trial.Path("suite"), "--device", "cuda:0"},
      {"--job", job_file}};
  const CudaHooksGuard guard;
  for (const std::vector<std::string>& arguments : runs) {
    SCOPED_TRACE(arguments.front());
    const CommandResult result = RunProgram(arguments);
    EXPECT_NE(result.status, -SIGABRT);
    EXPECT_THAT(result.errors, Not(HasSubstr("asked for")));
  }
  ServedTrainer trainer;
  trainer.Send(job);
  const auto outcome = trainer.ReceiveUntil<OutcomeMessage>();
  EXPECT_TRUE(outcome.outcome.has_value());
}

TEST(TrainerProgramDeathTest, TheGuardOfTheCudaHooksWorks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ::dlopen(HPO_CUDA_HOOKS_GUARD, RTLD_NOW);
        at::show_config();
      },
      "CUDA hooks were asked for before libtorch_cuda was loaded");
}

TEST(TrainerProgram, EndsWhenItsSupervisorIsGone) {
  const TinyTrial trial;
  ServedTrainer idle;
  ASSERT_TRUE(std::holds_alternative<Hello>(idle.Receive()));
  idle.Hang();
  EXPECT_EQ(idle.ExitStatus(), 0);
  ServedTrainer busy;
  TrainerJob endless = trial.Job();
  endless.task.trainer.epochs = 1000000;
  busy.Send(endless);
  busy.ReceiveUntil<MeasurementMessage>();
  busy.Hang();
  EXPECT_EQ(busy.ExitStatus(), 0);
}

}  // namespace
}  // namespace hpo::trainer
