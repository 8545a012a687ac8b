// Trials that another program ran: all or none, once, outside the budget unless asked.
#include <limits>

#include "gmock/gmock.h"
#include "server/api/study_api.h"
#include "server/orders/import_trials.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

ImportedTrial Imported(int64_t number, int64_t batch_size, double score) {
  return {.origin = absl::StrCat("optuna:old#", number),
          .params = {{"train.batch_size", batch_size}},
          .outcome = Completed{.metrics = {{"score", score}}},
          .measurements = {{.step = 1, .metrics = {{"score", score / 2.0}}},
                           {.step = 2, .metrics = {{"score", score}}}},
          .started = absl::FromUnixSeconds(1000),
          .ended = absl::FromUnixSeconds(1060)};
}

class ImportTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    AddStudy(PlainStudy("plain", /*trials=*/2));
  }

  absl::StatusOr<ImportResult> Import(const std::vector<ImportedTrial>& trials,
                                      bool count = false) {
    return StudyApi(*scheduler_)
        .ImportTrials({.study = "plain", .count_against_budget = count, .trials = trials});
  }

  void ExpectImport(const absl::StatusOr<ImportResult>& result, int64_t added, int64_t known) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->study, "plain");
    EXPECT_EQ(result->num_added, added);
    EXPECT_EQ(result->num_known, known);
  }

  TrialView Show(int64_t number) {
    const auto view = StudyApi(*scheduler_).queries().GetTrial("plain", TrialNumber{number});
    EXPECT_TRUE(view.ok()) << view.status();
    return view.value_or(TrialView{});
  }

  TrialCounts Counts() { return StudyApi(*scheduler_).queries().GetStudy("plain")->counts; }

  sampler::History Seen() { return (*scheduler_->state().studies.Find("plain"))->history(); }
};

TEST_F(ImportTest, ATrialIsShownWithWhatItReachedAndWhereItIsFrom) {
  ExpectImport(Import({Imported(7, 16, 0.8)}), 1, 0);
  const TrialView view = Show(0);
  EXPECT_EQ(view.trial.state, TrialState::kCompleted);
  EXPECT_EQ(view.trial.origin, "optuna:old#7");
  EXPECT_FALSE(view.trial.budgeted);
  EXPECT_EQ(view.trial.value, 0.8);
  EXPECT_EQ(view.trial.started, absl::FromUnixSeconds(1000));
  EXPECT_EQ(view.trial.ended, absl::FromUnixSeconds(1060));
  EXPECT_EQ(view.measurements, Imported(7, 16, 0.8).measurements);
  EXPECT_EQ(StudyApi(*scheduler_).queries().ListBestTrials("plain", 1)->front().id.number,
            TrialNumber{0});
}

TEST_F(ImportTest, WhatWasNotedOfItIsNotedHere) {
  ImportedTrial trial = Imported(7, 16, 0.8);
  trial.attributes = {
      {"data", "{ \"split\": 3 }"}, {"hpo.note", "\"look\""}, {"hpo.tags", "[\"b\",\"a\"]"}};
  ExpectImport(Import({trial, Imported(8, 8, 0.5)}), 2, 0);
  Restart();
  EXPECT_EQ(Show(0).trial.attributes, (Attributes{{"data", "{\"split\":3}"},
                                                  {"hpo.note", "\"look\""},
                                                  {"hpo.tags", "[\"a\",\"b\"]"}}));
  EXPECT_EQ(Show(1).trial.attributes, Attributes());
  for (const Attributes& bad : {Attributes{{"hpo.retry_of", "1"}}, Attributes{{"data", "{"}}}) {
    ImportedTrial refused = Imported(9, 4, 0.1);
    refused.attributes = bad;
    const absl::Status status = Import({Imported(10, 4, 0.1), refused}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("optuna:old#9: attribute"));
  }
  EXPECT_EQ(Counts().imported, 2);
}

TEST_F(ImportTest, TheSamplerSeesThemBeforeAndAfterARestart) {
  const ImportedTrial pruned{.origin = "optuna:old#1",
                             .params = {{"train.batch_size", int64_t{2}}},
                             .outcome = StoppedByPruner{.pruner = "optuna"}};
  ExpectImport(Import({Imported(0, 16, 0.8), pruned}), 2, 0);
  const sampler::History before = Seen();
  ASSERT_EQ(before.trials().size(), 2u);
  const sampler::HistoryTrial& first = before.trials().at(TrialNumber{0});
  EXPECT_EQ(first.losses, std::vector<double>{-0.8});
  EXPECT_EQ(first.intermediate, (std::map<int64_t, double>{{1, -0.4}, {2, -0.8}}));
  EXPECT_FALSE(first.budgeted);
  EXPECT_EQ(before.trials().at(TrialNumber{1}).prune_reason, PruneReason::kPruner);
  EXPECT_EQ(Show(1).trial.started, Show(1).trial.ended);
  EXPECT_EQ(Show(1).trial.ended, clock_.Now());
  Restart();
  EXPECT_EQ(Seen(), before);
}

TEST_F(ImportTest, NoneEndsBeforeItBegan) {
  ImportedTrial of_a_night_in_autumn = Imported(0, 16, 0.8);
  of_a_night_in_autumn.ended = of_a_night_in_autumn.started - absl::Minutes(50);
  ExpectImport(Import({of_a_night_in_autumn}), 1, 0);
  EXPECT_EQ(Show(0).trial.ended, Show(0).trial.started);
  EXPECT_EQ(Show(0).trial.started, absl::FromUnixSeconds(1000));
}

TEST_F(ImportTest, TheyAreOutsideTheBudgetAndCountedApart) {
  ExpectImport(Import({Imported(0, 1, 0.1), Imported(1, 2, 0.2), Imported(2, 3, 0.3)}), 3, 0);
  EXPECT_EQ(Counts().imported, 3);
  EXPECT_EQ(Counts().Finished(), 0);
  Restart();
  const std::string session = Register(MakeWorker("w"));
  for (int64_t number = 3; number < 5; ++number) {
    const Assignment assignment = MustAcquire(session);
    EXPECT_EQ(assignment.lease.trial.number, TrialNumber{number});
    Complete(assignment.lease, 0.5);
  }
  EXPECT_FALSE(Acquire(session).assignment.has_value());
  EXPECT_EQ(Counts().completed, 2);
}

TEST_F(ImportTest, TheyUseUpTheBudgetWhereAsked) {
  ExpectImport(Import({Imported(0, 1, 0.1), Imported(1, 2, 0.2)}, /*count=*/true), 2, 0);
  EXPECT_EQ(Counts().completed, 2);
  EXPECT_EQ(Counts().imported, 0);
  const std::string session = Register(MakeWorker("w"));
  EXPECT_FALSE(Acquire(session).assignment.has_value());
  Restart();
  EXPECT_TRUE(StudyApi(*scheduler_).queries().GetStudy("plain")->finished);
}

TEST_F(ImportTest, ThoseThatAreThereStayAsTheyAre) {
  ExpectImport(Import({Imported(0, 1, 0.1)}), 1, 0);
  ExpectImport(Import({Imported(0, 1, 0.1), Imported(1, 2, 0.2), Imported(1, 2, 0.2)}), 1, 2);
  Restart();
  ExpectImport(Import({Imported(0, 1, 0.1), Imported(1, 2, 0.2)}), 0, 2);
  EXPECT_EQ(Counts().imported, 2);
}

TEST_F(ImportTest, AnOriginWithAnotherOutcomeOrConfigurationIsRefused) {
  ExpectImport(Import({Imported(0, 1, 0.1)}), 1, 0);
  for (const ImportedTrial& other : {Imported(0, 1, 0.2), Imported(0, 2, 0.1)}) {
    const auto refused = Import({Imported(5, 5, 0.5), other});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("optuna:old#0: expected the parameters and the outcome that it was "
                          "imported with as trial #0, got others"));
  }
  EXPECT_EQ(Counts().imported, 1);
}

TEST_F(ImportTest, NothingIsImportedWhereOneDoesNotFit) {
  ImportedTrial unknown = Imported(1, 1, 0.1);
  unknown.params["colour"] = std::string("red");
  ImportedTrial lacking = Imported(1, 1, 0.1);
  lacking.params.clear();
  ImportedTrial text = Imported(1, 1, 0.1);
  text.params["train.batch_size"] = std::string("many");
  ImportedTrial fraction = Imported(1, 1, 0.1);
  fraction.params["train.batch_size"] = 1.5;
  ImportedTrial other_metric = Imported(1, 1, 0.1);
  other_metric.outcome = Completed{.metrics = {{"loss", 0.1}}};
  const std::pair<ImportedTrial, const char*> cases[] = {
      {unknown, "optuna:old#1: parameter colour: expected one of the study's parameters"},
      {lacking, "train.batch_size"},
      {text, "train.batch_size"},
      {fraction, "1.5"},
      {Imported(1, 65, 0.1), "65"},
      {other_metric, "optuna:old#1: metrics: expected score, an objective, got none"},
  };
  for (const auto& [trial, message] : cases) {
    SCOPED_TRACE(message);
    const auto refused = Import({Imported(0, 1, 0.1), trial});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(message));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("optuna:old#1"));
    EXPECT_EQ(Counts().imported, 0);
  }
}

TEST_F(ImportTest, NumbersTakeTheTypeOfTheirParameter) {
  ImportedTrial real = Imported(0, 1, 0.1);
  real.params["train.batch_size"] = 16.0;
  ExpectImport(Import({real}), 1, 0);
  EXPECT_EQ(Show(0).trial.params.at("train.batch_size"), ParamValue(int64_t{16}));
  ExpectImport(Import({real}), 0, 1);
}

TEST_F(ImportTest, AValueThatIsNotFiniteIsTheWorst) {
  ExpectImport(Import({Imported(0, 1, std::numeric_limits<double>::infinity())}), 1, 0);
  EXPECT_EQ(Seen().trials().at(TrialNumber{0}).losses,
            std::vector<double>{std::numeric_limits<double>::infinity()});
  EXPECT_FALSE(Show(0).trial.value.has_value());
}

TEST_F(ImportTest, TheyEndNoStudyForLackOfProgress) {
  StudySpec spec = PlainStudy("stale");
  spec.budget.no_progress = 2;
  AddStudy(spec);
  std::vector<ImportedTrial> trials;
  for (int64_t i = 0; i < 6; ++i)
    trials.push_back(Imported(i, 1 + i, 0.9 - 0.1 * static_cast<double>(i)));
  ASSERT_TRUE(ImportTrials(scheduler_->state(), {.study = "stale", .trials = trials}).ok());
  EXPECT_EQ((*scheduler_->state().studies.Find("stale"))->standing().termination, "");
  EXPECT_EQ(ImportTrials(scheduler_->state(), {.study = "absent"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ImportTest, ItEndsWithItsCaller) {
  int asked = 0;
  TrialImport import{.study = "plain"};
  for (int64_t i = 0; i < 10; ++i) import.trials.push_back(Imported(i, 1 + i, 0.5));
  import.cancelled = [&asked] { return ++asked > 15;
};  // it leaves while they are written
EXPECT_EQ(ImportTrials(scheduler_->state(), import).status().code(), absl::StatusCode::kCancelled);
EXPECT_EQ(Counts().imported, 0);
}  // namespace

}  // namespace hpo::server
}  // namespace hpo::server
