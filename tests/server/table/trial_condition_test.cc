#include "server/table/trial_condition.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/table/table_page.h"
#include "server/table/trial_columns.h"

namespace hpo::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StudySpec SelectedStudy() {
  StudySpec study;
  study.objectives = {{.metric = "f1"}};
  study.space.parameters = {{.name = "lr", .domain = FloatDomain()},
                            {.name = "model", .domain = CategoricalDomain()}};
  return study;
}

Trial TrialOf(int64_t number, TrialState state, double lr, const std::string& model,
              std::optional<double> f1) {
  Trial trial{.id = {.study = "s", .number = TrialNumber{number}},
              .state = state,
              .params = {{"lr", lr}, {"model", model}}};
  if (f1) trial.outcome = Completed{.metrics = {{"f1", *f1}}};
  return trial;
}

std::vector<Trial> ThreeTrials() {
  return {TrialOf(0, TrialState::kCompleted, 3e-5, "bert", 0.5),
          TrialOf(1, TrialState::kFailed, 1e-5, "roberta", std::nullopt),
          TrialOf(2, TrialState::kCompleted, 2e-5, "roberta", 0.75)};
}

// The numbers of the trials that all conditions hold for.
absl::StatusOr<std::vector<int64_t>> Select(const std::vector<Trial>& trials,
                                            const StudySpec& study,
                                            const std::vector<std::string>& where) {
  TrialColumns columns;
  for (const Trial& trial : trials) columns.Set(TableRow{.trial = trial});
  absl::StatusOr<TablePage> page = MakeTablePage(columns, study, {.where = where});
  if (!page.ok()) return page.status();
  return std::move(page->numbers);
}

std::vector<int64_t> Numbers(const std::vector<std::string>& where) {
  const absl::StatusOr<std::vector<int64_t>> selected =
      Select(ThreeTrials(), SelectedStudy(), where);
  EXPECT_TRUE(selected.ok()) << selected.status();
  return *selected;
}

TEST(TrialCondition, KeepsTheTrialsThatEveryConditionHoldsFor) {
  EXPECT_THAT(Numbers({"state=COMPLETED"}), ElementsAre(0, 2));
  EXPECT_THAT(Numbers({"model!=bert"}), ElementsAre(1, 2));
  EXPECT_THAT(Numbers({"lr>=2e-5", "f1<0.75"}), ElementsAre(0));
  EXPECT_THAT(Numbers({"f1 > 0.75"}), IsEmpty());
  EXPECT_THAT(Numbers({"lr<=1e-5"}), ElementsAre(1));
  EXPECT_THAT(Numbers({"param:model!=bert", "metric:f1>0"}), ElementsAre(2));
}

TEST(TrialCondition, NullIsAChoiceThatIsNoMoreAndNoLessThanANumber) {
  StudySpec study = SelectedStudy();
  study.space.parameters.push_back(
      {.name = "depth", .domain = CategoricalDomain{{Null(), int64_t{5}, std::string("null")}}});
  std::vector<Trial> trials = ThreeTrials();
  trials[0].params["depth"] = Null();
  trials[1].params["depth"] = int64_t{5};
  trials[2].params["depth"] = std::string("null");
  const auto numbers = [&](const std::string& where) {
    return Select(trials, study, {where}).value();
  };
  EXPECT_THAT(numbers("depth=null"), ElementsAre(0));
  EXPECT_THAT(numbers("depth=\"null\""), ElementsAre(2));
  EXPECT_THAT(numbers("depth!=null"), ElementsAre(1, 2));
  EXPECT_THAT(numbers("depth=5.0"), ElementsAre(1));
  EXPECT_THAT(numbers("depth!=6"), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers("depth<9"), ElementsAre(1));
  EXPECT_THAT(numbers("param:depth=null"), ElementsAre(0));
}

TEST(TrialCondition, AValueThatCannotBeComparedIsAnError) {
  StudySpec study = SelectedStudy();
  study.space.parameters[1].domain = CategoricalDomain{{std::string("bert"), std::string("gpt2")}};
  study.space.parameters.push_back(
      {.name = "batch", .domain = CategoricalDomain{{int64_t{8}, int64_t{16}, Null()}}});
  study.space.parameters.push_back({.name = "layers", .domain = IntDomain{}});
  study.space.parameters.push_back({.name = "amp", .domain = CategoricalDomain{{false, true}}});
  std::vector<Trial> trials = ThreeTrials();
  trials[0].params["amp"] = true;
  trials[0].params["removed"] = std::string("a");  // by an edit of the study
  const std::pair<const char*, const char*> cases[] = {
      {"lr>abc", "where: lr: expected a number, got 'abc'"},
      {"lr=", "where: lr: expected a number, got ''"},
      {"lr!=null", "where: lr: expected a number, got 'null'"},
      {"lr<nan", "where: lr: expected a number, got 'nan'"},
      {"layers=two", "where: layers: expected a number, got 'two'"},
      {"f1>=good", "where: f1: expected a number, got 'good'"},
      {"value>1,5", "where: value: expected a number, got '1,5'"},
      {"number=#3", "where: number: expected a number, got '#3'"},
      {"time>5m", "where: time: expected a number of seconds, got '5m'"},
      {"state=done", "where: state: expected one of queued, running, completed"},
      {"state=complete", "did you mean 'completed'?"},
      {"state>running", "where: state: expected = or !=, as states have no order, got >"},
      {"amp<true",
       "where: amp: expected = or !=, as its choices (false, true) have no order, "
       "got <"},
      {"amp>=1", "where: amp: expected = or !="},
      {"amp=1", "where: amp: expected one of false, true, got '1'"},
      {"model<=gpt2", "where: model: expected = or !=, as its choices (bert, gpt2) have no order"},
      {"batch<null", "where: batch: expected a number, got 'null'"},
      {"removed<b", "where: removed: expected = or !=, as its values are texts, got <"},
      {"param:model=bret", "where: param:model: expected one of bert, gpt2"},
      {"param:f1=1", "got 'param:f1'"},
      {"tag=good", "got 'tag'; for tags: hpo trial list --tag NAME"},
      {"started>yesterday", "where: started: expected a date or time, such as 2026-11-29 or"},
      {"model=bret", "where: model: expected one of bert, gpt2, got 'bret'; did you mean 'bert'?"},
      {"batch=few", "where: batch: expected one of 8, 16, null, got 'few'"},
      {"batch>many", "where: batch: expected a number, got 'many'"},
  };
  for (const auto& [where, message] : cases) {
    SCOPED_TRACE(where);
    const absl::Status refused = Select(trials, study, {where}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(message));
  }
  // Trials may have a choice that an edit has removed from the space.
  for (const char* where : {"model=roberta", "lr<inf", "state!=RUNNING", "batch<9.5", "batch=9",
                            "amp!=True", "removed=b"}) {
    EXPECT_TRUE(Select(trials, study, {where}).ok()) << where;
  }
}

TEST(TrialCondition, ANumericParameterHidesAFieldOfWords) {
  StudySpec study = SelectedStudy();
  study.space.parameters.push_back({.name = "state", .domain = IntDomain{}});
  std::vector<Trial> trials = ThreeTrials();
  trials[0].params["state"] = int64_t{3};
  EXPECT_THAT(Select(trials, study, {"state>2"}).value(), ElementsAre(0));
  EXPECT_THAT(std::string(Select(trials, study, {"state=completed"}).status().message()),
              HasSubstr("where: state: expected a number, got 'completed'"));
}

TEST(TrialCondition, APointInTimeIsADateATimeOrSeconds) {
  std::vector<Trial> trials = ThreeTrials();
  trials[0].started = absl::FromUnixSeconds(1'796'000'000);  // 2026-11-30 00:53:20 UTC
  trials[2].started = absl::FromUnixSeconds(1'795'900'000);  // 2026-11-28 21:06:40 UTC
  const auto numbers = [&](const std::string& where) {
    return Select(trials, SelectedStudy(), {where}).value();
  };
  EXPECT_THAT(numbers("started>=2026-11-29"), ElementsAre(0));
  EXPECT_THAT(numbers("started<2026-11-30T00:53:21Z"), ElementsAre(0, 2));
  EXPECT_THAT(numbers("started<2026-11-30T01:53:20+01:00"), ElementsAre(2));
  EXPECT_THAT(numbers("started<2026-11-28 21:06:40.5"), ElementsAre(2));
  EXPECT_THAT(numbers("started=1796000000"), ElementsAre(0));
  EXPECT_THAT(numbers("ended<2030-01-01"), IsEmpty());
}

TEST(TrialCondition, SaysWhatWasExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {"lr", "where: expected NAME=VALUE"},
      {"=3", "where: expected NAME=VALUE"},
      {"modle=bert", "got 'modle'; did you mean 'model'?"},
  };
  for (const auto& [where, message] : cases) {
    EXPECT_THAT(std::string(Select(ThreeTrials(), SelectedStudy(), {where}).status().message()),
                HasSubstr(message));
  }
}

}  // namespace
}  // namespace hpo::server
