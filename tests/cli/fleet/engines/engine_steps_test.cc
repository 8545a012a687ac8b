#include "cli/fleet/engines/engine_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/fleet/engines/fake_programs.h"

namespace hpo::cli {
namespace {

constexpr EngineWords kWords{.name = "Slurm", .missing = "install it"};

TEST(RunOf, HasAProgramThatTakesTooLongAsAnEngineThatDoesNotAnswer) {
  EngineMeans means = FakePrograms().means();
  means.run = [](const ProgramCall& call) -> absl::StatusOr<ProgramOutput> {
    return absl::DeadlineExceededError(absl::StrCat(call.words[0], " has not answered"));
  };
  const absl::Status status = RunOf(means, kWords, {"squeue"}, absl::Seconds(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "Slurm's squeue has not answered");
}

TEST(CheckSetup, IsFineWithoutLinesAndWithoutBash) {
  FakePrograms programs;
  EXPECT_TRUE(CheckSetup(programs.means(), {}).ok());
  EXPECT_THAT(programs.calls, testing::IsEmpty());
  FleetPlan plan;
  plan.setup = {"module load cuda"};
  EXPECT_TRUE(CheckSetup(programs.means(), plan).ok());
  EXPECT_THAT(programs.calls, testing::ElementsAre("bash -n -c module load cuda"));
}

TEST(CheckSetup, SaysWhatTheRealBashSays) {
  EngineMeans means{.run = [](const ProgramCall& call) {
    return RunEngineProgram(call, [](const std::string& /*text*/) {});
  }};
  FleetPlan plan;
  plan.setup = {"module load cuda", "echo $(date)"};
  EXPECT_TRUE(CheckSetup(means, plan).ok());
  plan.setup = {"module load \"x"};
  const absl::Status status = CheckSetup(means, plan);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("--setup: expected a line of shell, got 'module load \"x' ("));
}

TEST(ResizedText, SaysWhatBecomesOfThoseThatAreLeftOut) {
  EXPECT_EQ(ResizedText(2, 3, "those go"), "asked to have 3 workers");
  EXPECT_EQ(ResizedText(2, 1, "those go"), "asked to have 1 worker; those go");
}

}  // namespace
}  // namespace hpo::cli
