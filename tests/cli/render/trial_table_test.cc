#include "cli/render/trial_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

StudyStatus Study(std::vector<Objective> objectives) {
  StudyStatus study;
  study.spec.objectives = std::move(objectives);
  return study;
}

Trial Done(int64_t number, double f1, double learning_rate) {
  return {.id = {.study = "s", .number = TrialNumber{number}},
          .state = TrialState::kCompleted,
          .params = {{"model.name", std::string("bert")}, {"train.lr", learning_rate}},
          .outcome = Completed{.metrics = {{"f1", f1}, {"ms", 10.0 * f1}}},
          .value = f1,
          .started = absl::FromUnixSeconds(0),
          .ended = absl::FromUnixSeconds(5)};
}

TEST(TrialTable, ShowsWhatVariesWithTheDigitsThatTellTrialsApart) {
  EXPECT_EQ(TrialTable({Done(0, 0.982341, 3e-5), Done(1, 0.982344, 0.000123456)},
                       Study({{.metric = "f1"}}), 0),
            "TRIAL  STATE            f1  TIME   train.lr\n"
            "    0  COMPLETED  0.982341    5s      3e-05\n"
            "    1  COMPLETED  0.982344    5s  0.0001235\n"
            "in all: model.name=bert\n");
}

TEST(TrialTable, OfOneTrialEveryParameterIsAColumn) {
  EXPECT_EQ(TrialTable({Done(0, 0.5, 3e-5)}, Study({{.metric = "f1"}}), 0),
            "TRIAL  STATE       f1  TIME  model.name  train.lr\n"
            "    0  COMPLETED  0.5    5s  bert           3e-05\n");
}

TEST(TrialTable, EachObjectiveIsAColumnAndTheFrontIsMarked) {
  StudyStatus study = Study({{.metric = "f1"}, {.metric = "ms"}});
  study.front = {{.number = TrialNumber{1}, .values = {0.75, 7.5}}};
  EXPECT_EQ(TrialTable({Done(0, 0.5, 3e-5), Done(1, 0.75, 3e-5)}, study, 0),
            "TRIAL  STATE      FRONT    f1   ms  TIME\n"
            "    0  COMPLETED          0.5    5    5s\n"
            "    1  COMPLETED  *      0.75  7.5    5s\n"
            "in all: model.name=bert train.lr=3e-05\n");
}

TEST(TrialTable, WhatDidNotCompleteShowsItsLastValueAndWhy) {
  Trial pruned = Done(0, 0.5, 1e-5);
  pruned.state = TrialState::kPruned;
  pruned.value.reset();
  pruned.outcome = StoppedByPruner{.pruner = "median", .step = 2, .metrics = {{"f1", 0.4}}};
  Trial failed = Done(1, 0.5, 2e-5);
  failed.state = TrialState::kFailed;
  failed.value.reset();
  failed.outcome = Failed{.message = "Traceback:\n  line 3\nValueError: bad\n"};
  failed.last_measurement = Measurement{.step = 7, .metrics = {{"f1", 0.3}}};
  const std::string table = TrialTable({pruned, failed}, Study({{.metric = "f1"}}), 0);
  EXPECT_THAT(table, HasSubstr("PRUNED (PRUNER)    0.4    5s     1e-05  stopped by the median "
                               "pruner at step 2, f1 0.4\n"));
  EXPECT_THAT(table, HasSubstr("FAILED (INTERNAL)  0.3    5s     2e-05  ValueError: bad\n"));
  EXPECT_THAT(table, Not(HasSubstr("Traceback")));
}

TEST(TrialTable, WhereTheColumnsHaveNoRoomParametersShareOne) {
  std::vector<Trial> trials = {Done(0, 0.5, 1e-5), Done(1, 0.6, 2e-5)};
  for (int i = 0; i < 10; ++i) {
    trials[0].params["parameter." + std::to_string(i)] = int64_t{1};
    trials[1].params["parameter." + std::to_string(i)] = int64_t{2};
  }
  const std::string table = TrialTable(trials, Study({{.metric = "f1"}}), 80);
  EXPECT_THAT(table, HasSubstr("PARAMETERS\n"));
  EXPECT_THAT(table, HasSubstr("parameter.0=1"));
  EXPECT_EQ(table.find("model.name"), table.find("in all: ") + 8);
}

}  // namespace
}  // namespace hpo::cli
