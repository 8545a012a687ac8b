#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "worker/command/child_process.h"

namespace hpo::command {
namespace {

TEST(Termination, IsNotedAndNotInherited) {
  NoteTermination();
  // A program of this process dies of it as usual.
  const int status = std::system("exec sh -c 'kill -TERM $$; exit 3'");
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(TerminationSeen());
  std::raise(SIGTERM);
  EXPECT_TRUE(TerminationSeen());
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace hpo::command
