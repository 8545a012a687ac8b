#include "common/study/outcome_text.h"

#include <gtest/gtest.h>

#include "common/base/last_line.h"

namespace hpo {
namespace {

TEST(OutcomeText, AnEndSaysItsValuesOrItsReason) {
  const std::pair<TrialOutcome, const char*> cases[] = {
      {Completed{.metrics = {{"f1", 0.71312}, {"loss", 0.4}}}, "f1 0.71312, loss 0.4"},
      {Completed{}, "no metrics"},
      {StoppedByPruner{.pruner = "median", .step = 40}, "stopped by the median pruner at step 40"},
      {StoppedByPruner{.pruner = "median", .step = 40, .metrics = {{"f1", 0.25}}},
       "stopped by the median pruner at step 40, f1 0.25"},
      {OutOfMemory{.peak = MiB(3), .message = "CUDA out of memory"},
       "out of memory: CUDA out of memory"},
      {OutOfMemory{.requested = MiB(2), .limit = GiB(1), .phase = "backward", .message = "CUDA"},
       "out of memory in backward at step 0: wanted 2.00 MiB more at a peak of -, allowed 1.00 "
       "GiB"},
      {Failed{.message = "no label 'maybe'"}, "no label 'maybe'"},
      {Cancelled{}, "no reason given"},
  };
  for (const auto& [outcome, text] : cases) EXPECT_EQ(DescribeOutcome(outcome), text);
}

TEST(OutcomeText, AFailureOfManyLinesIsOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"the program exited with status 1; its last output:\n 10%|#  |\nTraceback (most recent call "
       "last):\n  File \"t.py\", line 3, in f\n    g()\n    ^^^\nValueError: bad\nmore of it\n"
       "Set HYDRA_FULL_ERROR=1 for more.",
       "ValueError: bad"},
      {"Traceback (most recent call last):\n  a\nKeyError: 'x'\n\nDuring handling of the above "
       "exception, another exception occurred:\n\nTraceback (most recent call last):\n  b\n"
       "RuntimeError: worse",
       "RuntimeError: worse"},
      {"─ Traceback (most recent call last) ─╮\n│ train.py:3 │\n╰──╯\nValueError: boxed",
       "ValueError: boxed"},
      {"the program exited with status 127; its last output:\nloading\nsh: foo: not found\n",
       "the program exited with status 127; its last output: sh: foo: not found"},
      {"first\nthe trial's process ended with status 3", "the trial's process ended with status 3"},
      {"Traceback (most recent call last):\n  cut off", "  cut off"},
  };
  for (const auto& [message, line] : cases) {
    EXPECT_EQ(DescribeOutcome(Failed{.message = message}), line);
    EXPECT_EQ(WholeOutcome(Failed{.message = message}), message);
  }
  EXPECT_EQ(WholeOutcome(Failed{}), "no message");
}

TEST(OutcomeText, TheLastLineOfATracebackNamesTheError) {
  EXPECT_EQ(LastLine("Traceback:\n  line 3\nValueError: bad\n\n"), "ValueError: bad");
  EXPECT_EQ(LastLine("one"), "one");
  EXPECT_EQ(LastLine(""), "");
}

}  // namespace
}  // namespace hpo
