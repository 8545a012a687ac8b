#include "common/device/process_tree.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

// Runs a text by /bin/sh, and waits until it has written a line.
pid_t StartShell(const std::string& text) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  char line = 0;
  EXPECT_EQ(read(ends[0], &line, 1), 1);
  close(ends[0]);
  return pid;
}

TEST(ProcessTree, FindsWhatHasLeftTheSessionAndItsEnvironment) {
  const pid_t shell = StartShell("setsid env -i sh -c 'echo; exec sleep 300' & exec sleep 300");
  EXPECT_EQ(Descendants(shell).size(), 1U);
  const std::vector<pid_t> all = Descendants(getpid());
  EXPECT_NE(std::find(all.begin(), all.end(), shell), all.end());
  EndOwnDescendants(kPatience);
  EXPECT_TRUE(Descendants(getpid()).empty());
  EXPECT_EQ(waitpid(shell, nullptr, 0), -1) << "it is reaped";
}

TEST(ProcessTree, AnOrphanIsAdopted) {
  AdoptOrphans();
  const pid_t shell = StartShell("sh -c 'sleep 300 & echo'");
  EXPECT_EQ(waitpid(shell, nullptr, 0), shell);
  EXPECT_EQ(Descendants(getpid()).size(), 1U);
  EndOwnDescendants(kPatience);
  EXPECT_TRUE(Descendants(getpid()).empty());
}

TEST(ProcessTree, KillsWhatAnotherProcessHasStarted) {
  AdoptOrphans();
  const pid_t shell = StartShell("sleep 300 & sleep 300 & echo; wait; read line");
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, shell, 0));
  ASSERT_GE(pidfd, 0);
  EXPECT_EQ(Descendants(shell).size(), 2U);
  KillDescendants(shell, pidfd);
  kill(shell, SIGKILL);
  EXPECT_EQ(waitpid(shell, nullptr, 0), shell);
  KillDescendants(shell, pidfd);  // its number may be another's
  close(pidfd);
  EndOwnDescendants(kPatience);
}

}  // namespace
}  // namespace hpo
