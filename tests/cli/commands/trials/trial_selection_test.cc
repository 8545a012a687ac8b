#include "cli/commands/trials/trial_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StudySpec Study() {
  StudySpec study;
  study.objectives = {{.metric = "f1"}};
  study.space.parameters = {{.name = "lr", .domain = FloatDomain()},
                            {.name = "model", .domain = CategoricalDomain()}};
  return study;
}

Trial Make(int64_t number, TrialState state, double lr, const std::string& model,
           std::optional<double> f1) {
  Trial trial{.id = {.study = "s", .number = TrialNumber{number}},
              .state = state,
              .params = {{"lr", lr}, {"model", model}}};
  if (f1) trial.last_measurement = Measurement{.metrics = {{"f1", *f1}}};
  return trial;
}

std::vector<Trial> Trials() {
  return {Make(0, TrialState::kCompleted, 3e-5, "bert", 0.5),
          Make(1, TrialState::kFailed, 1e-5, "roberta", std::nullopt),
          Make(2, TrialState::kCompleted, 2e-5, "roberta", 0.75)};
}

std::vector<int64_t> Numbers(const std::vector<std::string>& where, const std::string& sort) {
  const auto selected = SelectTrials(Trials(), Study(), where, sort);
  EXPECT_TRUE(selected.ok()) << selected.status();
  std::vector<int64_t> numbers;
  for (const Trial& trial : *selected) numbers.push_back(trial.id.number.value);
  return numbers;
}

TEST(SelectTrials, SortsByParametersAndMetrics) {
  EXPECT_THAT(Numbers({}, ""), ElementsAre(0, 1, 2));
  EXPECT_THAT(Numbers({}, "lr"), ElementsAre(1, 2, 0));
  EXPECT_THAT(Numbers({}, "-lr"), ElementsAre(0, 2, 1));
  EXPECT_THAT(Numbers({}, "-f1"), ElementsAre(2, 0, 1)) << "without a value last";
  EXPECT_THAT(Numbers({}, "f1"), ElementsAre(0, 2, 1)) << "without a value last";
  EXPECT_THAT(Numbers({}, "-number"), ElementsAre(2, 1, 0));
}

TEST(SelectTrials, KeepsThoseOfWhichEveryConditionHolds) {
  EXPECT_THAT(Numbers({"state=COMPLETED"}, ""), ElementsAre(0, 2));
  EXPECT_THAT(Numbers({"model!=bert"}, ""), ElementsAre(1, 2));
  EXPECT_THAT(Numbers({"lr>=2e-5", "f1<0.75"}, ""), ElementsAre(0));
  EXPECT_THAT(Numbers({"f1 > 0.75"}, ""), IsEmpty());
  EXPECT_THAT(Numbers({"lr<=1e-5"}, ""), ElementsAre(1));
}

TEST(SelectTrials, NullIsAChoiceThatIsNoMoreAndNoLessThanANumber) {
  StudySpec study = Study();
  study.space.parameters.push_back(
      {.name = "depth", .domain = CategoricalDomain{{Null(), int64_t{5}, std::string("null")}}});
  std::vector<Trial> trials = Trials();
  trials[0].params["depth"] = Null();
  trials[1].params["depth"] = int64_t{5};
  trials[2].params["depth"] = std::string("null");
  const auto numbers = [&](const std::string& where) {
    std::vector<int64_t> found;
    const absl::StatusOr<std::vector<Trial>> selected = SelectTrials(trials, study, {where}, "");
    for (const Trial& trial : *selected) {
      found.push_back(trial.id.number.value);
    }
    return found;
  };
  EXPECT_THAT(numbers("depth=null"), ElementsAre(0));
  EXPECT_THAT(numbers("depth=\"null\""), ElementsAre(2));
  EXPECT_THAT(numbers("depth!=null"), ElementsAre(1, 2));
  EXPECT_THAT(numbers("depth=5.0"), ElementsAre(1));
  EXPECT_THAT(numbers("depth!=6"), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers("depth<9"), ElementsAre(1));
}

TEST(SelectTrials, AValueThatCannotBeComparedIsAnError) {
  StudySpec study = Study();
  study.space.parameters[1].domain = CategoricalDomain{{std::string("bert"), std::string("gpt2")}};
  study.space.parameters.push_back(
      {.name = "batch", .domain = CategoricalDomain{{int64_t{8}, int64_t{16}, Null()}}});
  study.space.parameters.push_back({.name = "layers", .domain = IntDomain{}});
  study.space.parameters.push_back({.name = "amp", .domain = CategoricalDomain{{false, true}}});
  std::vector<Trial> trials = Trials();
  trials[0].params["amp"] = true;
  trials[0].params["removed"] = std::string("a");  // by an edit of the study
  const std::pair<const char*, const char*> cases[] = {
      {"lr>abc", "--where: lr: expected a number, got 'abc'"},
      {"lr=", "--where: lr: expected a number, got ''"},
      {"lr!=null", "--where: lr: expected a number, got 'null'"},
      {"lr<nan", "--where: lr: expected a number, got 'nan'"},
      {"layers=two", "--where: layers: expected a number, got 'two'"},
      {"f1>=good", "--where: f1: expected a number, got 'good'"},
      {"value>1,5", "--where: value: expected a number, got '1,5'"},
      {"number=#3", "--where: number: expected a number, got '#3'"},
      {"time>5m", "--where: time: expected a number of seconds, got '5m'"},
      {"state=done", "--where: state: expected one of queued, running, completed"},
      {"state=complete", "did you mean 'completed'?"},
      {"state>running", "--where: state: expected = or !=, as states have no order, got >"},
      {"amp<true",
       "--where: amp: expected = or !=, as its choices (false, true) have no order, "
       "got <"},
      {"amp>=1", "--where: amp: expected = or !="},
      {"amp=1", "--where: amp: expected one of false, true, got '1'"},
      {"model<=gpt2",
       "--where: model: expected = or !=, as its choices (bert, gpt2) have no order"},
      {"batch<null", "--where: batch: expected a number, got 'null'"},
      {"removed<b", "--where: removed: expected = or !=, as its values are texts, got <"},
      {"tag=good", "got 'tag'; for tags: --tag NAME"},
      {"started>2026-11-01", "got 'started'; times cannot be compared, but time, in seconds, can"},
      {"model=bret",
       "--where: model: expected one of bert, gpt2, got 'bret'; did you mean 'bert'?"},
      {"batch=few", "--where: batch: expected one of 8, 16, null, got 'few'"},
      {"batch>many", "--where: batch: expected a number, got 'many'"},
  };
  for (const auto& [where, message] : cases) {
    SCOPED_TRACE(where);
    const absl::Status refused = SelectTrials(trials, study, {where}, "").status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(message));
  }
  // A choice that an edit has taken out of the space, and of which there are trials.
  for (const char* where : {"model=roberta", "lr<inf", "state!=RUNNING", "batch<9.5", "batch=9",
                            "amp!=True", "removed=b"}) {
    EXPECT_TRUE(SelectTrials(trials, study, {where}, "").ok()) << where;
  }
}

TEST(SelectTrials, ANumericParameterHidesAFieldOfWords) {
  StudySpec study = Study();
  study.space.parameters.push_back({.name = "state", .domain = IntDomain{}});
  std::vector<Trial> trials = Trials();
  trials[0].params["state"] = int64_t{3};
  const auto found = SelectTrials(trials, study, {"state>2"}, "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 1U);
  EXPECT_THAT(std::string(SelectTrials(trials, study, {"state=completed"}, "").status().message()),
              HasSubstr("--where: state: expected a number, got 'completed'"));
}

TEST(SelectTrials, SaysWhatWasExpected) {
  const struct {
    std::vector<std::string> where;
    std::string sort;
    const char* message;
  } cases[] = {
      {{"lr"}, "", "--where: expected NAME=VALUE"},
      {{"=3"}, "", "--where: expected NAME=VALUE"},
      {{"modle=bert"}, "", "got 'modle'; did you mean 'model'?"},
      {{}, "-valeu", "--sort: expected a parameter, a metric"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(
        std::string(SelectTrials(Trials(), Study(), test.where, test.sort).status().message()),
        HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace hpo::cli
