// Optuna itself reads such a file in tests/integration/test_optuna.py.
#include "common/interop/optuna/optuna_file.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/interop/optuna/optuna_folder.h"

namespace hpo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StudySpec CriteriaSpec() {
  StudySpec spec;
  spec.name = "criteria";
  spec.objectives = {{"macro_f1", Direction::kMaximize}};
  spec.space.parameters = {
      {.name = "lr", .domain = FloatDomain{.low = 1e-6, .high = 1e-2, .log = true}},
      {.name = "size", .domain = IntDomain{.low = 8, .high = 70, .step = 16}},
      {.name = "share", .domain = FloatDomain{.low = 0.0, .high = 0.95, .step = 0.1}},
      {.name = "model", .domain = CategoricalDomain{{std::string("a"), std::string("b")}}}};
  return spec;
}

TrialView Completed12() {
  TrialView view;
  view.trial.id = {.study = "criteria", .number = TrialNumber{12}};
  view.trial.state = TrialState::kCompleted;
  view.trial.params = {
      {"lr", 3e-5}, {"size", int64_t{24}}, {"share", 0.3}, {"model", std::string("b")}};
  view.trial.started = absl::FromUnixMillis(1'700'000'005'250);
  view.trial.ended = absl::FromUnixMillis(1'700'000'065'000);
  view.trial.outcome = Completed{.metrics = {{"macro_f1", 0.75}}};
  view.measurements = {{.step = 10, .metrics = {{"loss", 1.5}, {"macro_f1", 0.5}}},
                       {.step = 10, .metrics = {{"macro_f1", 0.6}}},
                       {.step = 20, .metrics = {{"macro_f1", kNan}}},
                       {.step = 30, .metrics = {{"macro_f1", 0.75}}}};
  view.sampler = "tpe";
  return view;
}

class OptunaFileTest : public OptunaFolder {
 protected:
  // Rows as text, columns with a blank between them, NULL as "-".
  std::vector<std::string> Rows(const std::string& sql) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    std::vector<std::string> rows;
    const auto add = [](void* out, int count, char** values, char**) {
      std::string row;
      for (int i = 0; i < count; ++i) {
        row += (i > 0 ? " " : "") + std::string(values[i] != nullptr ? values[i] : "-");
      }
      static_cast<std::vector<std::string>*>(out)->push_back(row);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), add, &rows, nullptr), SQLITE_OK) << sql;
    sqlite3_close(database);
    return rows;
  }
};

TEST_F(OptunaFileTest, HoldsEverythingOfAStudy) {
  ASSERT_TRUE(Write(CriteriaSpec(), {Completed12()}).ok());
  EXPECT_THAT(Rows("SELECT schema_version FROM version_info"), ElementsAre("12"));
  EXPECT_THAT(Rows("SELECT study_name, direction, objective FROM studies "
                   "JOIN study_directions USING (study_id)"),
              ElementsAre("criteria MAXIMIZE 0"));
  EXPECT_THAT(Rows("SELECT number, state, length(datetime_start) FROM trials"),
              ElementsAre("12 COMPLETE 26"));
  EXPECT_THAT(
      Rows("SELECT param_name, param_value, distribution_json FROM trial_params ORDER BY 1"),
      ElementsAre("lr 3.0e-05 {\"attributes\":{\"high\":0.01,\"log\":true,\"low\":1e-06,"
                  "\"step\":null},\"name\":\"FloatDistribution\"}",
                  "model 1.0 {\"attributes\":{\"choices\":[\"a\",\"b\"]},"
                  "\"name\":\"CategoricalDistribution\"}",
                  "share 0.3 {\"attributes\":{\"high\":0.9,\"log\":false,\"low\":0.0,"
                  "\"step\":0.1},\"name\":\"FloatDistribution\"}",
                  "size 24.0 {\"attributes\":{\"high\":56,\"log\":false,\"low\":8,"
                  "\"step\":16},\"name\":\"IntDistribution\"}"));
  EXPECT_THAT(Rows("SELECT objective, value, value_type FROM trial_values"),
              ElementsAre("0 0.75 FINITE"));
  EXPECT_THAT(Rows("SELECT step, intermediate_value, intermediate_value_type "
                   "FROM trial_intermediate_values"),
              ElementsAre("10 0.5 FINITE", "20 - NAN", "30 0.75 FINITE"));
  EXPECT_THAT(Rows("SELECT \"key\", value_json FROM trial_user_attributes ORDER BY 1"),
              ElementsAre(HasSubstr("hpo:outcome {"), "hpo:sampler \"tpe\""));
}

TEST_F(OptunaFileTest, EveryStateHasItsName) {
  struct Case {
    TrialState state;
    std::optional<TrialOutcome> outcome;
    bool demonstration;
    const char* expected;  // state and value
  };
  const Case cases[] = {
      {TrialState::kQueued, std::nullopt, false, "WAITING -"},
      {TrialState::kRunning, std::nullopt, false, "RUNNING -"},
      {TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.5}}}, false, "COMPLETE 0.5"},
      {TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.5}}}, true, "PRUNED 0.75"},
      {TrialState::kCompleted, Completed{.metrics = {{"loss", 0.5}}}, false, "FAIL -"},
      {TrialState::kCompleted, Completed{.metrics = {{"macro_f1", kNan}}}, false, "FAIL -"},
      {TrialState::kPruned, StoppedByPruner{.pruner = "asha"}, false, "PRUNED 0.75"},
      {TrialState::kFailed, Failed{}, false, "FAIL -"},
      {TrialState::kCancelled, Cancelled{}, false, "FAIL -"},
  };
  std::vector<TrialView> trials;
  std::vector<std::string> expected;
  for (const Case& test : cases) {
    TrialView view = Completed12();
    view.trial.id.number = TrialNumber{static_cast<int64_t>(trials.size())};
    view.trial.state = test.state;
    view.trial.outcome = test.outcome;
    view.trial.demonstration = test.demonstration;
    trials.push_back(view);
    expected.emplace_back(test.expected);
  }
  ASSERT_TRUE(Write(CriteriaSpec(), trials).ok());
  EXPECT_EQ(Rows("SELECT state, value FROM trials LEFT JOIN trial_values USING (trial_id) "
                 "ORDER BY number"),
            expected);
}

TEST_F(OptunaFileTest, WritingAgainReplacesThisStudyAlone) {
  StudySpec other = CriteriaSpec();
  other.name = "other";
  ASSERT_TRUE(Write(other, {Completed12()}).ok());
  ASSERT_TRUE(Write(CriteriaSpec(), {Completed12(), Completed12()}).ok());
  ASSERT_TRUE(Write(CriteriaSpec(), {Completed12()}).ok());
  EXPECT_THAT(Rows("SELECT study_name, COUNT(*) FROM studies JOIN trials USING (study_id) "
                   "GROUP BY 1 ORDER BY 1"),
              ElementsAre("criteria 1", "other 1"));
  for (const char* table : {"trial_params", "trial_values", "trial_user_attributes"}) {
    EXPECT_THAT(Rows(std::string("SELECT COUNT(*) FROM ") + table +
                     " WHERE trial_id NOT IN (SELECT trial_id FROM trials)"),
                ElementsAre("0"));
  }
}

TEST_F(OptunaFileTest, WhatIsNotCommittedIsNotWritten) {
  ASSERT_TRUE(Write(CriteriaSpec(), {Completed12()}).ok());
  {
    auto file = OptunaFile::Begin(path_, CriteriaSpec());
    ASSERT_TRUE(file.ok()) << file.status();
  }
  EXPECT_THAT(Rows("SELECT COUNT(*) FROM trials"), ElementsAre("1"));
}

TEST_F(OptunaFileTest, AnotherFileIsRefusedAndNamed) {
  std::ofstream(path_) << "not a database, but long enough to be looked at as one";
  EXPECT_THAT(std::string(Write(CriteriaSpec(), {}).message()), HasSubstr("study.db: file is not"));
  std::filesystem::remove(path_);
  Rows("CREATE TABLE notes (text TEXT)");
  EXPECT_THAT(std::string(Write(CriteriaSpec(), {}).message()),
              HasSubstr("expected a new file or a database of Optuna's with schema 12, got another "
                        "database"));
  std::filesystem::remove(path_);
  ASSERT_TRUE(Write(CriteriaSpec(), {}).ok());
  Rows("UPDATE version_info SET schema_version = 11");
  EXPECT_THAT(std::string(Write(CriteriaSpec(), {}).message()), HasSubstr("got schema 11"));
  path_ = folder_ / "absent" / "study.db";
  EXPECT_EQ(Write(CriteriaSpec(), {}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(OptunaFileTest, ConstraintsAreWhatACompletedTrialExceeds) {
  StudySpec study = CriteriaSpec();
  study.constraints = {{.metric = "ms", .at_most = 50.0},
                       {.metric = "recall", .at_least = 0.5, .at_most = 1.0},
                       {.metric = "size", .at_most = 1.0}};
  TrialView view = Completed12();
  view.trial.outcome = Completed{.metrics = {{"macro_f1", 0.5}, {"ms", 60.5}, {"recall", 0.75}}};
  TrialView failed = Completed12();
  failed.trial.id.number = TrialNumber{13};
  failed.trial.state = TrialState::kFailed;
  failed.trial.outcome = Failed{};
  ASSERT_TRUE(Write(study, {view, failed}).ok());
  EXPECT_THAT(Rows("SELECT number, key, value_json FROM trial_system_attributes "
                   "JOIN trials USING (trial_id)"),
              ElementsAre("12 constraints [10.5, -0.25, Infinity]"));
  ASSERT_TRUE(Write(CriteriaSpec(), {view}).ok());
  EXPECT_THAT(Rows("SELECT * FROM trial_system_attributes"), ElementsAre());
}

TEST_F(OptunaFileTest, SeveralObjectivesHaveAValueEachAndNoSteps) {
  StudySpec study = CriteriaSpec();
  study.objectives.push_back({"loss", Direction::kMinimize});
  TrialView view = Completed12();
  view.trial.outcome = Completed{.metrics = {{"macro_f1", 0.5}, {"loss", 0.25}}};
  ASSERT_TRUE(Write(study, {view}).ok());
  EXPECT_THAT(Rows("SELECT direction FROM study_directions ORDER BY objective"),
              ElementsAre("MAXIMIZE", "MINIMIZE"));
  EXPECT_THAT(Rows("SELECT objective, value FROM trial_values ORDER BY 1"),
              ElementsAre("0 0.5", "1 0.25"));
  EXPECT_THAT(Rows("SELECT * FROM trial_intermediate_values"), ElementsAre());
}

}  // namespace
}  // namespace hpo
