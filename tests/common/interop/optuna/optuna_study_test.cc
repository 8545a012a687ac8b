// Files of Optuna's own are read in tests/integration/test_optuna.py.
#include "common/interop/optuna/optuna_study.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/interop/optuna/optuna_folder.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

StudySpec Criteria() {
  StudySpec spec;
  spec.name = "criteria";
  spec.objectives = {{"macro_f1", Direction::kMaximize}};
  spec.space.parameters = {
      {.name = "lr", .domain = FloatDomain{.low = 1e-6, .high = 1e-2, .log = true}},
      {.name = "size", .domain = IntDomain{.low = 8, .high = 70, .step = 16}},
      {.name = "model", .domain = CategoricalDomain{{std::string("a"), std::string("b")}}}};
  return spec;
}

TrialView Ended(int64_t number, TrialState state, std::optional<TrialOutcome> outcome) {
  TrialView view;
  view.trial.id = {.study = "criteria", .number = TrialNumber{number}};
  view.trial.state = state;
  view.trial.params = {{"lr", 3e-5}, {"size", int64_t{24}}, {"model", std::string("b")}};
  view.trial.started = absl::FromUnixMillis(1'700'000'005'250);
  view.trial.ended = absl::FromUnixMillis(1'700'000'065'000);
  view.trial.outcome = std::move(outcome);
  view.measurements = {{.step = 10, .metrics = {{"macro_f1", 0.5}}},
                       {.step = 30, .metrics = {{"macro_f1", 0.75}}}};
  view.sampler = "tpe";
  return view;
}

class OptunaStudyTest : public OptunaFolder {
 protected:
  void Write(const StudySpec& study, const std::vector<TrialView>& trials) const {
    const absl::Status written = OptunaFolder::Write(study, trials);
    ASSERT_TRUE(written.ok()) << written;
  }

  void Change(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    sqlite3_close(database);
  }

  absl::StatusOr<OptunaStudy> Read(const std::string& name = "") const {
    return ReadOptunaStudy(path_, name, Criteria());
  }

  // As Optuna writes them: without attributes of ours.
  void WriteOfOptuna(TrialState state, const TrialOutcome& outcome) const {
    Write(Criteria(), {Ended(0, state, outcome)});
    Change("DELETE FROM trial_user_attributes");
  }
};

TEST_F(OptunaStudyTest, WhatWasExportedComesBack) {
  const OutOfMemory oom{.peak = GiB(3), .limit = GiB(2), .phase = "forward", .step = 4};
  const std::vector<TrialView> exported = {
      Ended(0, TrialState::kCompleted, Completed{.metrics = {{"loss", 1.5}, {"macro_f1", 0.75}}}),
      Ended(1, TrialState::kPruned, oom),
      Ended(2, TrialState::kPruned, StoppedByPruner{.pruner = "asha", .step = 30}),
      Ended(3, TrialState::kFailed, Failed{.message = "bad labels"}),
      Ended(4, TrialState::kCancelled, Cancelled{.reason = "drained"}),
      Ended(5, TrialState::kRunning, std::nullopt),
      Ended(6, TrialState::kQueued, std::nullopt)};
  Write(Criteria(), exported);
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "criteria");
  EXPECT_EQ(read->num_open, 2);
  ASSERT_EQ(read->trials.size(), 5u);
  for (size_t i = 0; i < read->trials.size(); ++i) {
    SCOPED_TRACE(i);
    const ImportedTrial& trial = read->trials[i];
    EXPECT_EQ(trial.origin, absl::StrCat("optuna:criteria#", i));
    EXPECT_EQ(trial.params, exported[i].trial.params);
    EXPECT_EQ(trial.outcome, *exported[i].trial.outcome);
    EXPECT_EQ(trial.measurements, exported[i].measurements);
    EXPECT_EQ(trial.started, exported[i].trial.started);
    EXPECT_EQ(trial.ended, exported[i].trial.ended);
  }
}

TEST_F(OptunaStudyTest, AStateWithoutAnOutcomeOfOursSaysWhatItCan) {
  const Completed completed{.metrics = {{"macro_f1", 0.75}}};
  const std::pair<const char*, TrialOutcome> cases[] = {
      {"COMPLETE", completed},
      {"PRUNED", StoppedByPruner{.pruner = "optuna", .step = 30, .metrics = completed.metrics}},
      {"FAIL",
       Failed{.failure_class = FailureClass::kTrainerCrashed, .message = "failed in Optuna"}}};
  for (const auto& [state, outcome] : cases) {
    SCOPED_TRACE(state);
    WriteOfOptuna(TrialState::kCompleted, completed);
    Change(absl::StrCat("UPDATE trials SET state = '", state, "'"));
    const auto read = Read();
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->trials.size(), 1u);
    EXPECT_EQ(read->trials[0].outcome, outcome);
  }
}

TEST_F(OptunaStudyTest, AnOutcomeOfOursThatTheStateContradictsIsNotTaken) {
  Write(Criteria(), {Ended(0, TrialState::kCancelled, Cancelled{})});
  EXPECT_EQ(Read()->trials[0].outcome, TrialOutcome(Cancelled{}));
  Change("UPDATE trials SET state = 'PRUNED'");
  EXPECT_EQ(PruneReasonOf(Read()->trials[0].outcome), PruneReason::kPruner);
}

TEST_F(OptunaStudyTest, ADemonstrationIsOneAgain) {
  TrialView view = Ended(0, TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.75}}});
  view.trial.demonstration = true;
  Write(Criteria(), {view});
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->trials[0].demonstration);
  EXPECT_EQ(read->trials[0].outcome, *view.trial.outcome);
}

TEST_F(OptunaStudyTest, WhatWasNotedComesAlong) {
  TrialView view = Ended(0, TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.75}}});
  const Attributes noted = {
      {"data", "{\"split\":3}"}, {"hpo.note", "\"look\""}, {"hpo.tags", "[\"a\",\"b\"]"}};
  view.trial.attributes = noted;
  view.trial.attributes["hpo.retry_of"] = "7";  // which is another trial where it comes to
  Write(Criteria(), {view});
  Change(
      "INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES "
      "(1, 'owner', '\"me\"'), (1, 'hpo.note', '\"of May\"')");
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trials[0].attributes, noted);
  EXPECT_EQ(read->attributes, (Attributes{{"owner", "\"me\""}, {"hpo.note", "\"of May\""}}));
  EXPECT_EQ(read->num_unfit, 0);
}

TEST_F(OptunaStudyTest, AnAttributeThatIsNoneOfOursIsLeftOutAndCounted) {
  WriteOfOptuna(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.75}}});
  Change(
      "INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES "
      "(1, 'kept', '1'), (1, 'nan', 'NaN'), (1, 'hpo.other', '1'), "
      "(1, 'long', '\"' || printf('%.5000c', 'x') || '\"')");
  Change("INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (1, '', '1')");
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trials[0].attributes, (Attributes{{"kept", "1"}}));
  EXPECT_EQ(read->attributes, Attributes());
  EXPECT_EQ(read->num_unfit, 4);
}

TEST_F(OptunaStudyTest, NumbersThatAreNotFiniteHaveAType) {
  WriteOfOptuna(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.5}}});
  Change("UPDATE trial_values SET value = NULL, value_type = 'INF_NEG'");
  Change(
      "UPDATE trial_intermediate_values SET intermediate_value = NULL, "
      "intermediate_value_type = 'INF_POS'");
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trials[0].outcome,
            TrialOutcome(Completed{.metrics = {{"macro_f1", -kInfinity}}}));
  EXPECT_EQ(read->num_not_finite, 1);
  EXPECT_EQ(read->trials[0].measurements[0].metrics.at("macro_f1"), kInfinity);
}

TEST_F(OptunaStudyTest, AChoiceThatIsNoScalarIsItsText) {
  WriteOfOptuna(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.75}}});
  Change(
      "UPDATE trial_params SET param_value = 0, distribution_json = '{\"name\": "
      "\"CategoricalDistribution\", \"attributes\": {\"choices\": [[64, 32], \"b\"]}}' "
      "WHERE param_name = 'model'");
  const absl::StatusOr<OptunaStudy> read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trials.front().params.at("model"), ParamValue(std::string("[64,32]")));
  EXPECT_EQ(read->as_text, std::set<std::string>{"model"});
}

TEST_F(OptunaStudyTest, AWholeNumberThatADoubleDoesNotHoldIsRefused) {
  WriteOfOptuna(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.75}}});
  Change("UPDATE trial_params SET param_value = 9007199254740994.0 WHERE param_name = 'size'");
  EXPECT_THAT(std::string(Read().status().message()),
              HasSubstr("optuna:criteria#0: parameter size: expected a whole number within -2^53 "
                        "and 2^53, got 9007199254740994"));
}

TEST_F(OptunaStudyTest, WhatFailedBeforeItHadAllParametersIsLeftOut) {
  Write(Criteria(),
        {Ended(0, TrialState::kFailed, Failed{}), Ended(1, TrialState::kFailed, Failed{})});
  Change("DELETE FROM trial_params WHERE trial_id = 1 AND param_name = 'lr'");
  const auto read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->num_incomplete, 1);
  EXPECT_EQ(read->num_lacking, 0);
  ASSERT_EQ(read->trials.size(), 1u);
  EXPECT_EQ(read->trials[0].origin, "optuna:criteria#1");
}

TEST_F(OptunaStudyTest, AStudyIsChosenByName) {
  Write(Criteria(), {});
  StudySpec other = Criteria();
  other.name = "other";
  Write(other, {Ended(0, TrialState::kFailed, Failed{})});
  EXPECT_EQ(Read("other")->trials.size(), 1u);
  for (const char* name : {"", "absent"}) {
    const auto refused = Read(name);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("expected one of its studies (criteria, other), got"));
  }
}

TEST_F(OptunaStudyTest, AStudyOfOtherObjectivesIsRefused) {
  StudySpec other = Criteria();
  other.objectives = {{"macro_f1", Direction::kMinimize}};
  Write(other, {});
  EXPECT_THAT(std::string(Read().status().message()),
              HasSubstr("directions: expected MAXIMIZE as in study criteria, got MINIMIZE"));
  other.objectives = {{"accuracy", Direction::kMaximize}};
  Write(other, {});
  EXPECT_THAT(
      std::string(Read().status().message()),
      HasSubstr("metrics: expected [\"macro_f1\"] as in study criteria, got [\"accuracy\"]"));
}

TEST_F(OptunaStudyTest, SaysWhereAFileIsDamaged) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE trial_params SET param_value = 2 WHERE param_name = 'model'",
       "optuna:criteria#0: parameter model: expected the index of a choice, got 2 of"},
      {"UPDATE trial_params SET distribution_json = '{\"name\": \"Normal\"}' WHERE param_name = "
       "'lr'",
       "parameter lr: expected an IntDistribution"},
      {"UPDATE trial_params SET distribution_json = '[' WHERE param_name = 'lr'", "parameter lr"},
      {"UPDATE trial_params SET param_value = 1e300 WHERE param_name = 'size'", "parameter size"},
      {"DELETE FROM trial_values", "values: expected 1, got 0"},
      {"UPDATE trials SET state = 'GONE'", "expected a state of Optuna's, got GONE"},
      {"DROP TABLE trial_values", "cannot read"},
      {"UPDATE version_info SET schema_version = 11", "with schema 12, got schema 11"},
      {"DROP TABLE version_info", "with schema 12, got another file"},
  };
  for (const auto& [sql, message] : cases) {
    SCOPED_TRACE(sql);
    std::filesystem::remove(path_);
    WriteOfOptuna(TrialState::kCompleted, Completed{.metrics = {{"macro_f1", 0.75}}});
    Change(sql);
    const auto refused = Read();
    EXPECT_FALSE(refused.ok());
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(message));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(path_));
  }
}

TEST_F(OptunaStudyTest, AFileThatIsNoneOrAbsentIsNamed) {
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
  std::ofstream(path_) << "no database at all, but long enough to be looked at for a header";
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other.db"));
}

}  // namespace
}  // namespace hpo
