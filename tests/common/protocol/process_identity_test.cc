#include "common/protocol/process_identity.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace hpo {
namespace {

// A child that waits to be killed. What it says of itself comes through a pipe.
class WaitingChild {
 public:
  WaitingChild() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const ProcessIdentity own = OwnProcess();
      if (write(ends[1], &own.start_ticks, sizeof own.start_ticks) < 0) _exit(1);
      for (;;) pause();
    }
    identity_ = OwnProcess();
    identity_.pid = pid_;
    EXPECT_EQ(read(ends[0], &identity_.start_ticks, sizeof identity_.start_ticks),
              static_cast<ssize_t>(sizeof identity_.start_ticks));
    close(ends[0]);
    close(ends[1]);
  }
  ~WaitingChild() { Reap(); }

  const ProcessIdentity& identity() const { return identity_; }

  // Leaves it as a zombie.
  void Kill() const {
    kill(pid_, SIGKILL);
    siginfo_t ended;
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }
  void Reap() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
  ProcessIdentity identity_;
};

TEST(ProcessIdentity, SaysWhoThisProcessIs) {
  const ProcessIdentity own = OwnProcess();
  EXPECT_EQ(own.pid, getpid());
  EXPECT_GT(own.start_ticks, 0);
  EXPECT_EQ(own.boot_id.size(), 36u) << own.boot_id;
  EXPECT_EQ(own.namespaces.substr(0, 5), "pid:[");
  EXPECT_EQ(OwnProcess(), own);
  EXPECT_FALSE(HasEnded(own, own));
}

TEST(ProcessIdentity, AnEndIsSeenBeforeAndAfterTheParentHasTakenNote) {
  WaitingChild child;
  const ProcessIdentity own = OwnProcess();
  EXPECT_FALSE(HasEnded(child.identity(), own));
  child.Kill();
  EXPECT_TRUE(HasEnded(child.identity(), own)) << "a zombie";
  child.Reap();
  EXPECT_TRUE(HasEnded(child.identity(), own));
}

TEST(ProcessIdentity, AnotherProcessOfTheSameNumberIsNotTheOne) {
  const ProcessIdentity own = OwnProcess();
  ProcessIdentity earlier = own;
  earlier.start_ticks -= 1;
  EXPECT_TRUE(HasEnded(earlier, own));
}

TEST(ProcessIdentity, NothingIsSaidOfProcessesThatCannotBeSeenFromHere) {
  const ProcessIdentity own = OwnProcess();
  ProcessIdentity gone = own;
  gone.start_ticks -= 1;
  ProcessIdentity elsewhere = gone;
  elsewhere.boot_id = "another machine";
  ProcessIdentity contained = gone;
  contained.namespaces = "pid:[1]";
  for (const ProcessIdentity& process : {elsewhere, contained, ProcessIdentity{}}) {
    EXPECT_FALSE(HasEnded(process, own)) << process.boot_id;
  }
  EXPECT_FALSE(HasEnded(gone, ProcessIdentity{})) << "of which nothing is known itself";
}

// Of a process of another user nothing but its start may be read, or not even that.
TEST(ProcessIdentity, TheFirstProcessIsThere) {
  ProcessIdentity first = OwnProcess();
  first.pid = 1;
  EXPECT_TRUE(HasEnded(first, OwnProcess())) << "it started at another time";
}

}  // namespace
}  // namespace hpo
