#include "cli/fleet/engines/engine_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

TEST(RunEngineProgram, KeepsOutputAndErrorsApart) {
  const auto ended = RunEngineProgram({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status, 3);
  EXPECT_EQ(ended->output, "out\n");
  EXPECT_EQ(ended->errors, "err\n");
}

TEST(RunEngineProgram, TellsOfASignal) {
  const auto ended = RunEngineProgram({"sh", "-c", "kill -KILL $$"});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status, 128 + 9);
}

TEST(RunEngineProgram, TellsAMissingProgramFromOneThatEndsLikeThat) {
  const auto missing = RunEngineProgram({"hpo-no-such-program"});
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), testing::HasSubstr("hpo-no-such-program"));
  const auto ended = RunEngineProgram({"sh", "-c", "exit 127"});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status, 127);
}

TEST(ComplaintOf, IsTheLastLineWithoutTheProgramsName) {
  EXPECT_EQ(
      ComplaintOf("sbatch", {.status = 1, .errors = "a\nsbatch: error: no such partition\n\n"}),
      "no such partition");
  EXPECT_EQ(ComplaintOf("ray", {.status = 1, .output = "failed\n"}), "failed");
  EXPECT_EQ(ComplaintOf("ray", {.status = 4}), "it ended with status 4");
}

}  // namespace
}  // namespace hpo::cli
