#include "gtest/gtest.h"
#include "worker/command/command_template.h"
#include "worker/command/judge_run.h"

namespace hpo::command {
namespace {

TEST(WhyNotStarted, TheProgramThatTheCommandNames) {
  const struct {
    int status;
    const char* command;
    const char* line;
  } cases[] = {
      {127, "nosuch --lr {lr}", "/bin/sh: 1: nosuch: not found"},
      {127, "nosuch --lr {lr}", "/bin/sh: line 1: nosuch: command not found"},
      {127, "exec ./nosuch {lr}", "/bin/sh: 1: exec: ./nosuch: not found"},
      {127, "'my program' {lr}", "/bin/sh: 1: my program: not found"},
      {126, "./train.py {lr}", "/bin/sh: 1: ./train.py: Permission denied"},
      {126, "./train.py {lr}",
       "/bin/sh: ./train.py: /no/python: bad interpreter: No such file or directory"},
      {127, "env A=1 nosuch {lr}",
       "env: \xE2\x80\x98nosuch\xE2\x80\x99: No such file or directory"},
      {127, "env A=1 nosuch {lr}", "env: 'nosuch': No such file or directory"},
      {127, "timeout 5 nosuch {lr}",
       "timeout: failed to run command 'nosuch': No such file or directory"},
      {127, "bash nosuch.sh {lr}", "bash: nosuch.sh: No such file or directory"},
      {2, "python3 nosuch.py {lr}",
       "python3: can't open file '/work/nosuch.py': [Errno 2] No such file or directory"},
  };
  for (const auto& [status, command, line] : cases) {
    SCOPED_TRACE(line);
    const std::string text = CommandTemplate(command).PlainText();
    EXPECT_EQ(WhyNotStarted(status, std::string("loading\n") + line, text), line);
    EXPECT_EQ(WhyNotStarted(1, line, text), "");
  }
}

TEST(WhyNotStarted, NotOneThatAnotherTrialNamesOtherwise) {
  const std::string text = CommandTemplate("./{solver} x").PlainText();
  EXPECT_EQ(WhyNotStarted(127, "/bin/sh: 1: ./cplex: not found", text), "");
  EXPECT_EQ(WhyNotStarted(127, "/bin/sh: 1: ./: not found", text), "");
}

TEST(WhyNotStarted, NotOneOfAScriptsOwn) {
  const std::string text = CommandTemplate("bash run.sh {lr}").PlainText();
  EXPECT_EQ(WhyNotStarted(127, "run.sh: line 3: nosuch: command not found", text), "");
  EXPECT_EQ(WhyNotStarted(127, "", text), "");
}

}  // namespace
}  // namespace hpo::command
