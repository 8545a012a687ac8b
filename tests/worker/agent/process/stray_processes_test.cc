#include "worker/agent/process/stray_processes.h"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/files/read_file.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStrayPatience = absl::Seconds(20);

// Zombies that nobody here can reap count as gone.
bool Lives(pid_t pid) {
  const absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  return stat.ok() && stat->find(") Z ") == std::string::npos;
}

class StrayProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    for (const pid_t pid : started_) kill(pid, SIGKILL);
    fs::remove_all(folder_);
  }

  // A trainer that has started a process in a session of its own, as launchers do.
  struct Launched {
    std::unique_ptr<TrainerProcess> launcher;
    pid_t worker;
  };
  Launched Launch(const std::string& mark, const std::string& then = "wait") {
    const std::string pid_file = folder_ + "/" + RandomId();
    auto process = TrainerProcess::Start(
        {.argv = {"/bin/sh", "-c",
                  absl::StrCat("setsid sh -c 'echo $$ > ", pid_file, ".new; mv ", pid_file, ".new ",
                               pid_file, "; exec sleep 300' & read line <&3; ", then)},
         .environment = {},
         .log_path = folder_ + "/log",
         .mark = mark});
    EXPECT_TRUE(process.ok()) << process.status();
    while (!fs::exists(pid_file)) (*process)->WaitFor(absl::Milliseconds(5));
    Launched launched{.launcher = *std::move(process), .worker = 0};
    EXPECT_TRUE(absl::SimpleAtoi(*ReadFile(pid_file), &launched.worker));
    // Until then the shell, and mv in its end, carry the mark, too.
    const std::string name_file = absl::StrCat("/proc/", launched.worker, "/comm");
    while (ReadFile(name_file).value_or("sleep\n") != "sleep\n") {
      launched.launcher->WaitFor(absl::Milliseconds(5));
    }
    started_.push_back(launched.worker);
    return launched;
  }

  std::string folder_ = absl::StrCat(testing::TempDir(), "/stray_processes_", RandomId());
  std::vector<pid_t> started_;
};

TEST_F(StrayProcessesTest, WhatCarriesTheMarkIsEndedAndNothingElse) {
  const Launched marked = Launch("mark-1");
  const Launched other = Launch("mark-10");
  EXPECT_EQ(EndStrayProcesses("mark-1"), 2) << "the launcher is one of them";
  EXPECT_FALSE(Lives(marked.worker));
  EXPECT_TRUE(Lives(other.worker));
  EXPECT_EQ(EndStrayProcesses("mark-1"), 0);
}

TEST_F(StrayProcessesTest, AKillReachesWhatHasLeftTheGroup) {
  Launched trainer = Launch("mark-2");
  trainer.launcher->Kill();
  EXPECT_FALSE(Lives(trainer.worker));
}

TEST_F(StrayProcessesTest, WhatATrainerLeavesEndsWithIt) {
  Launched trainer = Launch("mark-3", "exit 0");
  ASSERT_TRUE(trainer.launcher->channel().WriteLine("end", kStrayPatience).ok());
  ASSERT_TRUE(trainer.launcher->WaitFor(kStrayPatience));
  EXPECT_FALSE(Lives(trainer.worker));
}

// The figure of defect 19: trainers at once on the card after a restart.
TEST_F(StrayProcessesTest, ANewProcessOfTheFolderEndsWhatTheLastOneLeft) {
  const std::string mark = RenewTrainerMark(folder_);
  const Launched trainer = Launch(mark);
  EXPECT_NE(RenewTrainerMark(folder_), mark);
  EXPECT_FALSE(Lives(trainer.worker));
}

TEST_F(StrayProcessesTest, ACopyOfAFolderSaysNothing) {
  const std::string mark = RenewTrainerMark(folder_);
  const Launched trainer = Launch(mark);
  fs::create_directories(folder_ + "/copy");
  fs::copy_file(folder_ + "/trainer_mark", folder_ + "/copy/trainer_mark");
  EXPECT_NE(RenewTrainerMark(folder_ + "/copy"), mark);
  EXPECT_TRUE(Lives(trainer.worker));
}

}  // namespace
}  // namespace hpo::agent
