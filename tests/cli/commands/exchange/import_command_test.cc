#include "cli/commands/exchange/import_command.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

// A study "plain" with two trials that ended and one that runs, exported; a study "next" like it.
class ImportTest : public server::CoordinatorFixture {
 protected:
  void SetUp() override {
    server::CoordinatorFixture::SetUp();
    ASSERT_TRUE(Create(server::kPlainStudy).ok());
    const std::string session = Register();
    Complete(Acquire(session, "a1").assignment(), 0.5);
    Complete(Acquire(session, "a2").assignment(), 0.9);
    Acquire(session, "a3");
    path_ = folder_ / "study.db";
    ASSERT_EQ(Run({"export", "optuna", path_, "plain"}).status, 0);
    ASSERT_TRUE(
        Create(absl::StrReplaceAll(server::kPlainStudy, {{"name: plain", "name: next"}})).ok());
  }

  ProgramResult Run(std::vector<std::string> words) const {
    words.push_back("--server");
    words.push_back(coordinator_->address());
    return RunProgram(std::move(words));
  }

  std::string path_;
};

TEST_F(ImportTest, TrialsThatEndedAreThereAndSayWhereTheyAreFrom) {
  const ProgramResult imported = Run({"import", "optuna", path_, "next"});
  EXPECT_EQ(imported.status, 0) << imported.err;
  EXPECT_EQ(imported.out,
            "2 trials of plain imported into next, outside its budget; 1 have not ended\n");
  const ProgramResult shown = Run({"trial", "show", "1", "--study", "next"});
  EXPECT_THAT(shown.out, HasSubstr("imported  from optuna:plain#1, outside the budget\n"));
  EXPECT_THAT(shown.out, HasSubstr("value     0.9\n"));
  const auto ours =
      ParsedOutput(Run({"trial", "show", "1", "--study", "plain", "--output", "json"}));
  const auto theirs =
      ParsedOutput(Run({"trial", "show", "1", "--study", "next", "--output", "json"}));
  EXPECT_EQ(theirs["params"], ours["params"]);
  EXPECT_EQ(theirs["outcome"], ours["outcome"]);
  EXPECT_EQ(theirs["origin"], "optuna:plain#1");
  EXPECT_EQ(theirs["budgeted"], false);
  EXPECT_EQ(ours["origin"], "");
  EXPECT_EQ(ours["budgeted"], true);
  EXPECT_THAT(Run({"study", "show", "next"}).out, HasSubstr("; 2 imported"));
}

TEST_F(ImportTest, WhatWasNotedOfTheStudyAndItsTrialsIsThereToo) {
  const auto annotate = [this](std::vector<std::string> words) {
    ASSERT_EQ(Run(std::move(words)).status, 0);
  };
  annotate(
      {"study", "annotate", "plain", "--note", "the first", "--tag", "paper", "--set", "owner=me"});
  annotate({"trial", "annotate", "1", "--study", "plain", "--tag", "good", "--set", "rows=3"});
  annotate({"study", "annotate", "next", "--note", "the next"});
  ASSERT_EQ(Run({"export", "optuna", path_, "plain"}).status, 0);
  ASSERT_EQ(Run({"import", "optuna", path_, "next"}).status, 0);
  const auto study = ParsedOutput(Run({"study", "show", "next", "--output", "json"}));
  EXPECT_EQ(study["note"], "the next");
  EXPECT_EQ(study["tags"], nlohmann::json({"paper"}));
  EXPECT_EQ(study["attributes"]["owner"], "me");
  const auto trial =
      ParsedOutput(Run({"trial", "show", "1", "--study", "next", "--output", "json"}));
  EXPECT_EQ(trial["tags"], nlohmann::json({"good"}));
  EXPECT_EQ(trial["attributes"]["rows"], 3);
}

TEST_F(ImportTest, AgainItAddsNothingAndSaysSo) {
  ASSERT_EQ(Run({"import", "optuna", path_, "next", "--count"}).status, 0);
  const ProgramResult again = Run({"import", "optuna", path_, "next", "--from", "plain"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("0 trials of plain imported into next"));
  EXPECT_THAT(again.out, HasSubstr("2 were there already"));
  const auto json = ParsedOutput(Run({"import", "optuna", path_, "next", "--output", "json"}));
  EXPECT_EQ(json["added"], 0);
  EXPECT_EQ(json["known"], 2);
  EXPECT_EQ(json["open"], 1);
  EXPECT_THAT(Run({"trial", "show", "0", "--study", "next"}).out,
              HasSubstr("imported  from optuna:plain#0\n"));
}

TEST_F(ImportTest, AStudyThatIsNotThereIsMadeFromTheFile) {
  const ProgramResult imported = Run({"import", "optuna", path_, "made"});
  EXPECT_EQ(imported.status, 0) << imported.err;
  EXPECT_EQ(imported.out,
            "study made created; 2 trials of plain imported into made, outside its budget; 1 have "
            "not ended\n");
  const auto json = ParsedOutput(Run({"import", "optuna", path_, "made", "--output", "json"}));
  EXPECT_EQ(json["created"], false);
  EXPECT_EQ(json["known"], 2);
  const auto made =
      ParsedOutput(Run({"trial", "show", "1", "--study", "made", "--output", "json"}));
  const auto ours =
      ParsedOutput(Run({"trial", "show", "1", "--study", "plain", "--output", "json"}));
  EXPECT_EQ(made["params"], ours["params"]);
  // Without a name it is the study that is called as in the file.
  EXPECT_THAT(Run({"import", "optuna", path_}).out,
              HasSubstr("trials of plain imported into plain"));
}

TEST_F(ImportTest, WhatDoesNotFitIsNamedAndNothingIsImported) {
  ASSERT_TRUE(
      Create(absl::StrReplaceAll(server::kPlainStudy, {{"name: plain", "name: narrow"},
                                                       {"int: [1, 64]", "int: [100, 101]"}}))
          .ok());
  const ProgramResult refused = Run({"import", "optuna", path_, "narrow"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr(path_));
  EXPECT_THAT(refused.err, HasSubstr("optuna:plain#0"));
  EXPECT_THAT(refused.err, HasSubstr("train.batch_size"));
  EXPECT_EQ(ParsedOutput(Run({"trial", "list", "--study", "narrow", "--output", "json"}))["total"],
            0);
  EXPECT_EQ(Run({"import", "optuna", folder_ / "absent.db", "next"}).status, 3);
  EXPECT_EQ(Run({"import", "optuna", path_, "next", "--from", "absent"}).status, 3);
}

}  // namespace
}  // namespace hpo::cli
