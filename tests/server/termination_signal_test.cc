#include "server/termination_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace hpo::server {
namespace {

// Signals are the whole process' matter: each case runs in a process of its own.
TEST(TerminationSignalDeathTest, ASignalIsAValueOnce) {
  const auto run = [] {
    const TerminationSignal signals;
    if (signals.WaitFor(absl::ZeroDuration())) _exit(1);
    raise(SIGTERM);
    if (signals.WaitFor(absl::Seconds(10)) != SIGTERM) _exit(2);
    if (signals.WaitFor(absl::ZeroDuration())) _exit(3);
    raise(SIGPIPE);
    _exit(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(TerminationSignalDeathTest, TheNextOneEndsTheProcessAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto run = [signal] {
      const TerminationSignal signals;
      raise(SIGTERM);
      if (!signals.WaitFor(absl::Seconds(10))) _exit(1);
      signals.ExitOnNext();
      raise(signal);
      _exit(2);
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(128 + signal), "");
  }
}

}  // namespace
}  // namespace hpo::server
