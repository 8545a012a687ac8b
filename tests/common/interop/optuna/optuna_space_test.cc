// Files of Optuna's own are read in tests/integration/test_optuna.py.
#include "common/interop/optuna/optuna_space.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "common/study_file/study_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/interop/optuna/optuna_folder.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

class OptunaSpaceTest : public OptunaFolder {
 protected:
  void SetUp() override {
    StudySpec study;
    study.name = "theirs";
    study.objectives = {{"value", Direction::kMaximize}};
    ASSERT_TRUE(Write(study, {}).ok());
    Run("DELETE FROM study_system_attributes");
  }

  void Run(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sql << ": " << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  void AddTrial(int number, const std::string& state = "COMPLETE") const {
    Run(absl::StrCat("INSERT INTO trials (trial_id, number, study_id, state) VALUES (", number + 1,
                     ", ", number, ", 1, '", state, "')"));
  }

  void AddParam(int number, const std::string& name, double value, const std::string& kind,
                const std::string& attributes) const {
    Run(absl::StrCat(
        "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (",
        number + 1, ", '", name, "', ", value, ", '{\"name\":\"", kind, "\",\"attributes\":{",
        attributes, "}}')"));
  }

  void AddFloat(int number, const std::string& name, double value, const std::string& low,
                const std::string& high,
                const std::string& more = R"("log":false,"step":null)") const {
    AddParam(number, name, value, "FloatDistribution",
             absl::StrCat("\"low\":", low, ",\"high\":", high, ",", more));
  }

  void AddInt(int number, const std::string& name, int value, const std::string& low,
              const std::string& high, int step = 1) const {
    AddParam(number, name, value, "IntDistribution",
             absl::StrCat("\"low\":", low, ",\"high\":", high, ",\"log\":false,\"step\":", step));
  }

  void AddChoice(int number, const std::string& name, int index, const std::string& choices) const {
    AddParam(number, name, index, "CategoricalDistribution",
             absl::StrCat("\"choices\":[", choices, "]"));
  }

  absl::StatusOr<StudySpec> Made(const std::string& name = "") const {
    const absl::StatusOr<std::string> file = OptunaStudyFile(path_, "", name);
    if (!file.ok()) return file.status();
    return ParseStudyFile(*file, "made", StudyOverrides());
  }

  Domain DomainOf(const std::string& name) const {
    const absl::StatusOr<StudySpec> made = Made();
    EXPECT_TRUE(made.ok()) << made.status();
    const Parameter* parameter = made.ok() ? made->space.Find(name) : nullptr;
    return parameter == nullptr ? Domain() : parameter->domain;
  }
};

TEST_F(OptunaSpaceTest, EveryKindOfDistributionIsADomain) {
  AddTrial(0);
  AddFloat(0, "lr", 1e-3, "1e-5", "0.1", R"("log":true,"step":null)");
  AddFloat(0, "drop", 0.25, "0.0", "0.5", R"("log":false,"step":0.25)");
  AddFloat(0, "fixed", 0.5, "0.5", "0.5");
  AddInt(0, "depth", 3, "1", "9", 2);
  AddChoice(0, "limit", 0, R"(null, 5, 0.5, true, "null")");
  const absl::StatusOr<StudySpec> made = Made("ours");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->name, "ours");
  EXPECT_EQ(made->objectives, (std::vector<Objective>{{"value", Direction::kMaximize}}));
  EXPECT_EQ(made->trainer.task, "function");
  EXPECT_EQ(made->memory.policy, MemoryPolicy::kOff);
  const SearchSpace& space = made->space;
  EXPECT_EQ(space.Find("lr")->domain, Domain(FloatDomain{.low = 1e-5, .high = 0.1, .log = true}));
  EXPECT_EQ(space.Find("drop")->domain, Domain(FloatDomain{.low = 0.0, .high = 0.5, .step = 0.25}));
  EXPECT_EQ(space.Find("fixed")->domain, Domain(CategoricalDomain{{0.5}}));
  EXPECT_EQ(space.Find("depth")->domain, Domain(IntDomain{.low = 1, .high = 9, .step = 2}));
  EXPECT_EQ(space.Find("limit")->domain,
            Domain(CategoricalDomain{{Null(), int64_t{5}, 0.5, true, std::string("null")}}));
}

TEST_F(OptunaSpaceTest, AChoiceThatIsNoScalarIsItsText) {
  AddTrial(0);
  AddChoice(0, "layers", 1, R"([64, 32], {"of": [1.5, NaN]}, NaN, -Infinity, "x")");
  EXPECT_EQ(
      DomainOf("layers"),
      Domain(CategoricalDomain{{std::string("[64,32]"), std::string(R"({"of":[1.5,NaN]})"),
                                std::string("NaN"), std::string("-Infinity"), std::string("x")}}));
}

TEST_F(OptunaSpaceTest, WhatCannotBeAParameterIsNamedWithWhatToDo) {
  AddTrial(0);
  AddTrial(3);
  AddParam(3, "seed", 9e18, "IntDistribution",
           R"("low":0,"high":18446744073709551616,"log":false,"step":1)");
  EXPECT_THAT(std::string(Made().status().message()),
              HasSubstr("study.db: study theirs: trial 3: parameter seed: expected whole numbers "
                        "within -2^53 and 2^53, got [0, 1.8446744073709552e+19]"));
  EXPECT_THAT(std::string(Made().status().message()),
              HasSubstr("; to import the study, leave the parameter out in a copy of the file: "
                        "sqlite3 COPY \"DELETE FROM trial_params WHERE param_name = 'seed'\""));
  Run("UPDATE trial_params SET param_name = 'größe'");
  EXPECT_THAT(std::string(Made().status().message()),
              HasSubstr("trial 3: parameter größe: expected a name of letters, digits, '.', '_' "
                        "and '-'"));
  EXPECT_THAT(std::string(Made().status().message()),
              HasSubstr("rename the parameter in a copy of the file: sqlite3 COPY \"UPDATE "
                        "trial_params SET param_name = 'NEW' WHERE param_name = 'größe'\""));
}

TEST_F(OptunaSpaceTest, RangesThatChangedAreJoined) {
  AddTrial(0);
  AddFloat(0, "x", 0.5, "0.0", "1.0");
  AddInt(0, "n", 8, "0", "16", 8);
  AddFloat(0, "grid", 0.5, "0.0", "1.0", R"("log":false,"step":0.5)");
  AddTrial(1);
  AddFloat(1, "x", 3.0, "0.5", "2.0");  // a value outside, as enqueue_trial takes it
  AddInt(1, "n", 20, "4", "32", 16);
  AddFloat(1, "grid", 0.3, "0.0", "0.9", R"("log":false,"step":0.3)");
  EXPECT_EQ(DomainOf("x"), Domain(FloatDomain{.low = 0.0, .high = 3.0}));
  EXPECT_EQ(DomainOf("n"), Domain(IntDomain{.low = 0, .high = 32, .step = 4}));
  EXPECT_EQ(DomainOf("grid"), Domain(FloatDomain{.low = 0.0, .high = 1.0}));
}

TEST_F(OptunaSpaceTest, AParameterThatSomeTrialsHaveGetsTheConditionThatTellsThem) {
  for (int number = 0; number < 4; ++number) {
    AddTrial(number);
    AddChoice(number, "kind", number % 2, R"("svm", "forest")");
    AddInt(number, "layers", number, "0", "5");
    if (number % 2 == 0) AddFloat(number, "c", 1.0, "0.0", "2.0");
    if (number >= 2) AddFloat(number, "width", 1.0, "0.0", "2.0");
    if (number == 1) AddFloat(number, "odd", 1.0, "0.0", "2.0");
  }
  AddTrial(4, "FAIL");  // drew nothing
  const absl::StatusOr<StudySpec> made = Made();
  ASSERT_TRUE(made.ok()) << made.status();
  const auto when = [&](const char* name) { return made->space.Find(name)->when; };
  EXPECT_EQ(when("kind"), std::vector<Condition>());
  EXPECT_EQ(when("c"), (std::vector<Condition>{{"kind", {std::string("svm")}}}));
  EXPECT_EQ(when("width"),
            (std::vector<Condition>{{"layers", {int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}}}}));
  EXPECT_EQ(when("odd"), (std::vector<Condition>{{"layers", {int64_t{1}}}}));
}

TEST_F(OptunaSpaceTest, WhatIsNoStudyHereIsNamed) {
  EXPECT_THAT(std::string(Made().status().message()),
              HasSubstr("study.db: study theirs: expected a trial with parameters"));
  AddTrial(0);
  AddFloat(0, "x", 0.5, "0.0", "1.0");
  AddTrial(1);
  AddInt(1, "x", 1, "0", "1");
  EXPECT_THAT(std::string(Made().status().message()),
              HasSubstr("trial 1: parameter x: expected distributions of one kind in all trials, "
                        "got [0, 1] and [0, 1]"));
  Run("UPDATE study_directions SET direction = 'NOT_SET'");
  EXPECT_THAT(std::string(Made().status().message()), HasSubstr("got NOT_SET"));
}

}  // namespace
}  // namespace hpo
