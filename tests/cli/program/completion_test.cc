#include "cli/program/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    app_.fallthrough();
    app_.add_option("--study", study_)->type_name("STUDY");
    app_.add_option("--server", server_);
    app_.add_option("-o,--output", output_)->check(CLI::IsMember({"table", "json"}));
    app_.add_option("--hidden", hidden_)->group("");
    CLI::App* const trial = app_.add_subcommand("trial", "Trials; all of them");
    CLI::App* const list = trial->add_subcommand("list", "List trials");
    list->add_flag("--newest-first", newest_);
    list->add_option("--state", states_)->type_name("STATE");
    trial->add_subcommand("logs")->add_option("file", hidden_)->type_name("FILE");
    app_.add_subcommand("secret")->group("");
  }

  std::vector<std::string> Words(const std::vector<std::string>& words) const {
    std::vector<std::string> found;
    for (const auto& candidate : CompleteWords(app_, words).candidates) {
      found.push_back(candidate.word);
    }
    return found;
  }

  CLI::App app_;
  std::string study_;
  std::string server_;
  std::string output_;
  std::string hidden_;
  std::vector<std::string> states_;
  bool newest_ = false;
};

TEST_F(CompletionTest, FollowsTheDefinition) {
  EXPECT_THAT(Words({""}), ElementsAre("trial"));
  EXPECT_THAT(Words({"trial", ""}), ElementsAre("list", "logs"));
  EXPECT_THAT(Words({"--output", "json", "trial", "li"}), ElementsAre("list"));
  EXPECT_THAT(Words({"--output=json", "trial", "li"}), ElementsAre("list"));
  EXPECT_THAT(Words({"trial", "list", "--newest-first", "x"}), IsEmpty());
  EXPECT_THAT(Words({"-o", "t"}), ElementsAre("table"));
  EXPECT_THAT(Words({"--output="}), ElementsAre("--output=table", "--output=json"));
  EXPECT_THAT(Words({"trial", "list", "--state", "p"}), ElementsAre("pruned"));
  EXPECT_THAT(Words({"trial", "list", "--", "--s"}), IsEmpty());
  EXPECT_THAT(Words({"trial", "list", "--"}),
              testing::AllOf(Contains("--newest-first"), Contains("--study"), Contains("--help"),
                             Not(Contains("--hidden"))));
}

TEST_F(CompletionTest, PathsAndStudiesAreLeftToOthers) {
  EXPECT_EQ(CompleteWords(app_, {"trial", "logs", ""}).paths, Completions::Paths::kFiles);
  Completions completions = CompleteWords(app_, {"--server", "unix:/a", "--study=b"});
  EXPECT_EQ(completions.server, "unix:/a");
  ASSERT_TRUE(completions.wants_studies);
  AddStudyNames({"bert", "gpt"}, "--study=b", completions);
  EXPECT_EQ(CompletionText(completions), "--study=bert\tstudy\n:none\n");
}

TEST_F(CompletionTest, DescriptionsAreShort) {
  EXPECT_EQ(CompletionText(CompleteWords(app_, {"tr"})), "trial\tTrials\n:none\n");
}

TEST(Completion, OfTheProgramNeedsNoServer) {
  const ProgramResult result = RunOffline({"__complete", "study", "show"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(RunProgram({"__complete", "study", "s"}).out, HasSubstr("show\tShow a study"));
}

TEST(Completion, OtherShellsAreNamed) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(CompletionScript(shell).value(), HasSubstr("__complete"));
  }
  ExpectRefused({"completion", "tcsh"}, 2, "tcsh");
}

}  // namespace
}  // namespace hpo::cli
