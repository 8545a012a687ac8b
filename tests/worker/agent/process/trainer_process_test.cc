#include "worker/agent/process/trainer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/few_descriptors.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

// Whether `pid`, a process of another parent, is gone within the patience.
bool EndsSoon(pid_t pid) {
  const UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.ok()) return true;
  pollfd ended{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) == 1;
}

class TrainerProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log_ = ::testing::TempDir() + "/trainer_process-" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".log";
    std::filesystem::remove(log_);
  }
  void TearDown() override { std::filesystem::remove(log_); }

  absl::StatusOr<std::unique_ptr<TrainerProcess>> Shell(
      const std::string& script, std::map<std::string, std::string> environment = {}) {
    return TrainerProcess::Start({.argv = {"/bin/sh", "-c", script},
                                  .environment = std::move(environment),
                                  .log_path = log_});
  }

  // The next line from the child.
  static std::string Line(TrainerProcess& process) {
    for (;;) {
      const ReceivedLines received = process.channel().ReadAvailable().value();
      if (!received.lines.empty()) return received.lines.front();
      if (received.closed) return "(closed)";
      pollfd readable{.fd = process.channel().fd(), .events = POLLIN, .revents = 0};
      if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) != 1) {
        return "(nothing)";
      }
    }
  }

  std::string log_;
};

TEST_F(TrainerProcessTest, TalksOverDescriptorThreeBothWays) {
  auto process = Shell("read line <&3; echo \"got $line\" >&3");
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE((*process)->channel().WriteLine("ping", kPatience).ok());
  EXPECT_EQ(Line(**process), "got ping");
  EXPECT_EQ((*process)->WaitFor(kPatience), ProcessExit({.code = 0, .signal = std::nullopt}));
}

TEST_F(TrainerProcessTest, ReportsStatusAndSignal) {
  auto exits = Shell("exit 23");
  ASSERT_TRUE(exits.ok());
  EXPECT_EQ((*exits)->WaitFor(kPatience), ProcessExit({.code = 23, .signal = std::nullopt}));
  auto dies = Shell("kill -SEGV $$");
  ASSERT_TRUE(dies.ok());
  EXPECT_EQ((*dies)->WaitFor(kPatience), ProcessExit({.code = std::nullopt, .signal = SIGSEGV}));
}

TEST_F(TrainerProcessTest, KeepsBothOutputsInItsLog) {
  auto process = Shell("echo to-stdout; echo to-stderr >&2");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->WaitFor(kPatience));
  EXPECT_EQ(ReadFile(log_).value(), "to-stdout\nto-stderr\n");
}

TEST_F(TrainerProcessTest, EnvironmentIsOursWithChangesPutOverIt) {
  setenv("HPO_TEST_INHERITED", "kept", 1);
  setenv("HPO_TEST_CHANGED", "old", 1);
  auto process =
      Shell("echo $HPO_TEST_INHERITED $HPO_TEST_CHANGED >&3", {{"HPO_TEST_CHANGED", "new"}});
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(Line(**process), "kept new");
}

TEST_F(TrainerProcessTest, OurTokensAreNotInherited) {
  setenv("HPO_TOKEN", "secret", 1);
  setenv("HPO_SERVER_TOKEN", "secret", 1);
  setenv("HF_TOKEN", "theirs", 1);
  auto process = Shell("echo \"$HPO_TOKEN$HPO_SERVER_TOKEN$HF_TOKEN\" >&3");
  for (const char* name : {"HPO_TOKEN", "HPO_SERVER_TOKEN", "HF_TOKEN"}) unsetenv(name);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(Line(**process), "theirs");
}

TEST_F(TrainerProcessTest, InheritsNothingButItsFourDescriptors) {
  const UniqueFd leaky(open("/dev/null", O_RDONLY));  // not close-on-exec
  ASSERT_TRUE(leaky.ok());
  auto process = TrainerProcess::Start(
      {.argv = {"/bin/ls", "/proc/self/fd"}, .environment = {}, .log_path = log_});
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE((*process)->WaitFor(kPatience));
  // 4 is the folder that ls itself reads.
  EXPECT_EQ(ReadFile(log_).value(), "0\n1\n2\n3\n4\n");
}

TEST_F(TrainerProcessTest, BlockedSignalsAreNotInherited) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  auto process = Shell("kill -TERM $$; exit 5");
  sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ((*process)->WaitFor(kPatience), ProcessExit({.code = std::nullopt, .signal = SIGTERM}));
}

TEST_F(TrainerProcessTest, AMissingProgramIsNamed) {
  const auto process = TrainerProcess::Start(
      {.argv = {"/nowhere/hpo-trainer"}, .environment = {}, .log_path = log_});
  EXPECT_TRUE(absl::IsNotFound(process.status())) << process.status();
  EXPECT_THAT(std::string(process.status().message()), HasSubstr("/nowhere/hpo-trainer"));
  EXPECT_THAT(std::string(process.status().message()), HasSubstr("; install hpo-trainer there"));
}

TEST_F(TrainerProcessTest, AFileThatCannotBeExecutedIsNamed) {
  const auto process =
      TrainerProcess::Start({.argv = {"/etc/passwd"}, .environment = {}, .log_path = log_});
  EXPECT_TRUE(absl::IsPermissionDenied(process.status())) << process.status();
}

TEST_F(TrainerProcessTest, NoCommandAndNoLogAreErrors) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      TrainerProcess::Start({.argv = {}, .environment = {}, .log_path = log_}).status()));
  const absl::Status no_log =
      TrainerProcess::Start({.argv = {"/bin/true"}, .environment = {}, .log_path = "/nowhere/log"})
          .status();
  EXPECT_TRUE(absl::IsInternal(no_log));
  EXPECT_THAT(std::string(no_log.message()), HasSubstr("/nowhere/log"));
}

TEST_F(TrainerProcessTest, WithoutDescriptorsItIsUnavailable) {
  absl::Status started = absl::UnavailableError("");
  rlim_t limit = 3;
  for (; absl::IsUnavailable(started) && limit < 1000; ++limit) {
    const FewDescriptors few(limit);
    started = Shell("exit 0").status();
  }
  EXPECT_TRUE(started.ok()) << started << " at " << limit;
  EXPECT_GT(limit, 8) << "six descriptors and three that were there";
}

TEST_F(TrainerProcessTest, PollTellsNothingWhileItRuns) {
  auto process = Shell("read line <&3");
  ASSERT_TRUE(process.ok());
  EXPECT_EQ((*process)->Poll(), std::nullopt);
  EXPECT_EQ((*process)->WaitFor(absl::Milliseconds(1)), std::nullopt);
  EXPECT_EQ((*process)->Kill(), ProcessExit({.code = std::nullopt, .signal = SIGKILL}));
  EXPECT_EQ((*process)->Poll(), ProcessExit({.code = std::nullopt, .signal = SIGKILL}));
}

TEST_F(TrainerProcessTest, TheDestructorKillsEverythingItStarted) {
  pid_t leader = 0;
  pid_t grandchild = 0;
  {
    auto process = Shell("sleep 1000 & echo $! >&3; wait");
    ASSERT_TRUE(process.ok());
    leader = (*process)->pid();
    grandchild = std::stoi(Line(**process));
    ASSERT_EQ(kill(grandchild, 0), 0);
  }
  EXPECT_EQ(kill(leader, 0), -1);  // reaped, not a zombie
  EXPECT_TRUE(EndsSoon(grandchild));
}

TEST_F(TrainerProcessTest, WhatATrainerLeavesBehindEndsWithIt) {
  auto process = Shell("sleep 1000 & echo $! >&3");
  ASSERT_TRUE(process.ok());
  const pid_t grandchild = std::stoi(Line(**process));
  EXPECT_EQ((*process)->WaitFor(kPatience), ProcessExit({.code = 0, .signal = std::nullopt}));
  EXPECT_TRUE(EndsSoon(grandchild));
}

// A supervisor that is killed by SIGKILL runs no destructor; the kernel ends the trainer.
TEST_F(TrainerProcessTest, DiesWithItsParent) {
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  UniqueFd from_parent(pipe_fds[0]);
  UniqueFd to_us(pipe_fds[1]);
  const pid_t parent = fork();
  if (parent == 0) {
    auto process = Shell("exec sleep 1000");
    const pid_t child = process.ok() ? (*process)->pid() : 0;
    if (write(to_us.get(), &child, sizeof child) != sizeof child) _exit(1);
    for (;;) pause();
  }
  ASSERT_GT(parent, 0);
  pid_t child = 0;
  ASSERT_EQ(read(from_parent.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  ASSERT_EQ(kill(child, 0), 0);
  ASSERT_EQ(kill(parent, SIGKILL), 0);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  EXPECT_TRUE(EndsSoon(child));
}

}  // namespace
}  // namespace hpo::agent
