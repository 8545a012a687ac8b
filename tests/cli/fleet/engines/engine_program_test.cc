#include "cli/fleet/engines/engine_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

void Silent(const std::string& /*text*/) {}

TEST(RunEngineProgram, KeepsOutputAndErrorsApart) {
  const auto ended =
      RunEngineProgram({.words = {"sh", "-c", "echo out; echo err >&2; exit 3"}}, Silent);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status, 3);
  EXPECT_EQ(ended->output, "out\n");
  EXPECT_EQ(ended->errors, "err\n");
}

TEST(RunEngineProgram, TellsOfASignal) {
  const auto ended = RunEngineProgram({.words = {"sh", "-c", "kill -KILL $$"}}, Silent);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status, 128 + 9);
}

TEST(RunEngineProgram, TellsAMissingProgramFromOneThatEndsLikeThat) {
  const auto missing = RunEngineProgram({.words = {"hpo-no-such-program"}}, Silent);
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), testing::HasSubstr("hpo-no-such-program"));
  const auto ended = RunEngineProgram({.words = {"sh", "-c", "exit 127"}}, Silent);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->status, 127);
}

TEST(RunEngineProgram, EndsOneThatTakesTooLong) {
  const auto ended =
      RunEngineProgram({.words = {"sleep", "60"}, .patience = absl::Milliseconds(50)}, Silent);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ended.status())) << ended.status();
  EXPECT_EQ(ended.status().message(), "sleep has not answered within 50ms");
}

TEST(RunEngineProgram, SaysWhatIsSlow) {
  std::vector<std::string> told;
  const auto notify = [&told](const std::string& text) { told.push_back(text); };
  ASSERT_TRUE(RunEngineProgram({.words = {"true"}, .if_slow = "starting"}, notify).ok());
  EXPECT_THAT(told, testing::IsEmpty());
  ASSERT_TRUE(RunEngineProgram({.words = {"sleep", "3.2"}, .if_slow = "starting"}, notify).ok());
  EXPECT_THAT(told, testing::ElementsAre("starting"));
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
