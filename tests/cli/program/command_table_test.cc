#include "cli/program/command_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace hpo::cli {
namespace {

struct Line {
  std::string text;
  std::string words;
  Access access = Access::kChanges;
  std::string study;
};

TEST(CommandTable, ALineChoosesItsCommandAndNamesItsStudy) {
  using enum Access;
  const Line lines[] = {
      {"status", "status", kReads, ""},
      {"watch --until-finished", "watch", kChanges, ""},
      {"run criteria --trials 3", "run", kChanges, ""},
      {"study list --tag paper", "study list", kReads, ""},
      {"study show criteria", "study show", kReads, "criteria"},
      {"study extend criteria --add 3", "study extend", kChanges, "criteria"},
      {"study stop criteria --now", "study stop", kChanges, "criteria"},
      {"study validate my.yaml", "study validate", kReads, ""},
      {"study create my.yaml", "study create", kChanges, ""},
      {"trial show 12", "trial show", kReads, ""},
      {"trial stop 12", "trial stop", kChanges, ""},
      {"fleet slurm --workers 8 --name a", "fleet slurm", kChanges, ""},
      {"fleet stop criteria", "fleet stop", kChanges, ""},
      {"export optuna study.db criteria", "export optuna", kReads, "criteria"},
      {"import optuna study.db criteria", "import optuna", kChanges, "criteria"},
      {"admin backup copy.db", "admin backup", kChanges, ""},
      {"completion bash", "completion", kChanges, ""},
      {"memory explain 12", "memory explain", kReads, ""},
      {"memory dry-run", "memory dry-run", kReads, ""},
  };
  for (const Line& line : lines) {
    SCOPED_TRACE(line.text);
    CLI::App app;
    std::string study;
    ChosenCommand chosen;
    DeclareCommands(app, study, chosen);
    ASSERT_NO_THROW(app.parse(line.text));
    EXPECT_EQ(chosen.words, line.words);
    EXPECT_EQ(chosen.access, line.access);
    EXPECT_EQ(study, line.study);
    EXPECT_TRUE(chosen.action);
  }
}

TEST(CommandTable, AGroupAloneIsNoCommand) {
  for (const char* const group :
       {"study", "trial", "export", "import", "admin", "fleet", "memory"}) {
    CLI::App app;
    std::string study;
    ChosenCommand chosen;
    DeclareCommands(app, study, chosen);
    EXPECT_THROW(app.parse(group), CLI::RequiredError) << group;
  }
}

TEST(CommandTable, ACommandsHelpShowsTheExamplesThatBeginWithIt) {
  CLI::App app;
  std::string study;
  ChosenCommand chosen;
  DeclareCommands(app, study, chosen);
  const std::string list = app.get_subcommand("trial")->get_subcommand("list")->get_footer();
  EXPECT_THAT(list, testing::HasSubstr("hpo trial list --state pruned"));  // of hpo --help
  EXPECT_THAT(list, testing::HasSubstr("hpo trial list --tag good"));      // of its group
  EXPECT_THAT(list, testing::Not(testing::HasSubstr("hpo trial show")));
}

}  // namespace
}  // namespace hpo::cli
