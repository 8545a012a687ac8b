#include "common/interop/mlflow/mlflow_export.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/fake_mlflow.h"

namespace hpo {
namespace {

using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TrialView Running() {
  TrialView view;
  Trial& trial = view.trial;
  trial.id = {.study = "criteria", .number = TrialNumber{12}};
  trial.state = TrialState::kRunning;
  trial.params = {{"train.lr", 3e-5}, {"head|size", int64_t{64}}, {"model.name", std::string("b")}};
  trial.created = absl::FromUnixMillis(1'700'000'000'000);
  trial.started = absl::FromUnixMillis(1'700'000'005'000);
  trial.attempts = {
      {.number = AttemptNumber{1},
       .worker = "host:gpu0",
       .predicted = MiB(900),
       .plan = {.effective_batch = 32, .micro_batch = 8},
       .memory = MemoryReport{.live_peak = MiB(700), .reserved_peak = MiB(800), .num_ooms = 2}}};
  view.measurements = {{.step = 10, .metrics = {{"loss", 1.5}, {"macro_f1", 0.4}}}};
  view.sampler = "tpe";
  return view;
}

TrialView Ended() {
  TrialView view = Running();
  view.measurements.push_back({.step = 20, .metrics = {{"loss", 1.0}, {"macro_f1", 0.3}}});
  view.trial.state = TrialState::kCompleted;
  view.trial.outcome = Completed{.metrics = {{"macro_f1", 0.4}}};
  view.trial.ended = absl::FromUnixMillis(1'700'000'065'000);
  return view;
}

class MlflowExportTest : public ::testing::Test {
 protected:
  absl::Status WriteAnew(const TrialView& view) {
    return MlflowExport(client_, "criteria", "my runs").Write(view);
  }

  FakeMlflow mlflow_;
  FakeMlflowHttp http_{mlflow_};
  MlflowClient client_{"http://mlflow:5000", http_};
  MlflowExport export_{client_, "criteria", "my runs"};
};

TEST_F(MlflowExportTest, ARunTellsEverything) {
  ASSERT_TRUE(export_.Write(Ended()).ok());
  ASSERT_THAT(mlflow_.runs(), SizeIs(1));
  const FakeMlflow::Run run = mlflow_.runs()[0];
  EXPECT_EQ(run.experiment, "id-of-my runs");
  EXPECT_EQ(run.name, "criteria #12");
  EXPECT_EQ(run.status, "FINISHED");
  EXPECT_EQ(run.start, 1'700'000'005'000);
  EXPECT_EQ(run.end, 1'700'000'065'000);
  EXPECT_THAT(run.params, UnorderedElementsAre(Pair("train.lr", "3e-05"), Pair("head_size", "64"),
                                               Pair("model.name", "b")));
  EXPECT_EQ(run.tags.at("hpo.state"), "COMPLETED");
  EXPECT_EQ(run.tags.at("hpo.worker"), "host:gpu0");
  EXPECT_EQ(run.tags.at("hpo.ooms"), "2");
  EXPECT_EQ(run.tags.at("hpo.sampler"), "tpe");
  EXPECT_EQ(nlohmann::json::parse(run.tags.at("hpo.plan"))["micro_batch"], 8);
  ASSERT_THAT(run.metrics, SizeIs(8));
  EXPECT_EQ(run.metrics[0]["key"], "loss");
  EXPECT_EQ(run.metrics[0]["step"], 10);
  EXPECT_EQ(run.metrics[0]["timestamp"], 1'700'000'005'010);
  EXPECT_EQ(run.metrics[7]["key"], "result.macro_f1");
  EXPECT_EQ(run.metrics[7]["value"], 0.4);
  EXPECT_EQ(run.metrics[4]["key"], "memory.peak_allocated_bytes");
  EXPECT_EQ(run.metrics[4]["value"], 700 << 20);
  EXPECT_EQ(run.metrics[5]["key"], "memory.peak_reserved_bytes");
  EXPECT_EQ(run.metrics[5]["value"], 800 << 20);
  EXPECT_EQ(run.metrics[6]["key"], "memory.predicted_bytes");
  EXPECT_EQ(run.metrics[6]["value"], 900 << 20);
}

TEST_F(MlflowExportTest, TheMemoryOfATrialThatDidNotFitIsTold) {
  TrialView view = Running();
  view.trial.outcome =
      OutOfMemory{.message = "CUDA out of memory", .traceback = std::string(9000, 'x') + "\nend"};
  view.trial.state = TrialState::kPruned;
  view.trial.attempts.push_back({.number = AttemptNumber{2}, .worker = "lost"});
  ASSERT_TRUE(export_.Write(view).ok());
  EXPECT_EQ(mlflow_.runs()[0].metrics.back()["key"], "memory.predicted_bytes");
  EXPECT_EQ(mlflow_.runs()[0].metrics.back()["value"], 900 << 20);
  const std::map<std::string, std::string> tags = mlflow_.runs()[0].tags;
  EXPECT_EQ(tags.at("oom_error"), "true");
  EXPECT_EQ(tags.at("error_message"), "CUDA out of memory");
  EXPECT_THAT(tags.at("error_traceback"), ::testing::EndsWith("x\nend"));
  EXPECT_LE(tags.at("error_traceback").size(), 5000U);
}

TEST_F(MlflowExportTest, AStudyHasARunOfItsOwnWithItsTrialsByState) {
  StudyStatus study;
  study.created = absl::FromUnixMillis(1'700'000'000'000);
  study.counts = {.running = 1, .completed = 4, .pruned = 3, .oom_met = 1, .oom_predicted = 1};
  study.best_value = 0.4;
  const absl::Time now = absl::FromUnixMillis(1'700'000'070'000);
  ASSERT_TRUE(export_.WriteStudy(study, now).ok());
  ASSERT_TRUE(export_.Write(Ended()).ok());
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(export_.WriteStudy(study, now + absl::Seconds(1)).ok());
    ASSERT_TRUE(
        MlflowExport(client_, "criteria", "my runs").WriteStudy(study, now + absl::Seconds(2)).ok())
        << "of another program run";
  }
  ASSERT_THAT(mlflow_.runs(), SizeIs(2));
  EXPECT_EQ(mlflow_.runs()[1].tags.at("mlflow.parentRunId"), "run-100");
  FakeMlflow::Run run = mlflow_.runs()[0];
  EXPECT_EQ(run.name, "criteria");
  EXPECT_EQ(run.status, "RUNNING");
  const auto values = [&run] {
    std::map<std::string, double> all;
    for (const nlohmann::json& metric : run.metrics) all[metric["key"]] = metric["value"];
    return all;
  };
  EXPECT_THAT(values(), UnorderedElementsAre(Pair("completed_trials", 4), Pair("pruned_trials", 3),
                                             Pair("failed_trials", 0), Pair("cancelled_trials", 0),
                                             Pair("running_trials", 1), Pair("queued_trials", 0),
                                             Pair("oom_trials", 2), Pair("oom_recovered_trials", 0),
                                             Pair("best_value", 0.4)));
  EXPECT_THAT(run.metrics, SizeIs(9)) << "once";
  EXPECT_EQ(run.metrics[0]["step"], 7);
  EXPECT_EQ(run.metrics[0]["timestamp"], 1'700'000'070'000);

  study.counts.running = 0;
  study.counts.failed = 1;
  study.finished = true;
  ASSERT_TRUE(export_.WriteStudy(study, now + absl::Seconds(9)).ok());
  run = mlflow_.runs()[0];
  EXPECT_EQ(run.status, "FINISHED");
  EXPECT_EQ(run.end, 1'700'000'079'000);
  EXPECT_EQ(values()["failed_trials"], 1);
  EXPECT_EQ(run.metrics.back()["step"], 8);
}

TEST_F(MlflowExportTest, WritingAgainBringsUpToDateAndDoublesNothing) {
  ASSERT_TRUE(export_.Write(Running()).ok());
  EXPECT_EQ(mlflow_.runs()[0].status, "RUNNING");
  EXPECT_EQ(mlflow_.runs()[0].end, 0);
  EXPECT_THAT(mlflow_.runs()[0].metrics, SizeIs(2));
  ASSERT_TRUE(export_.Write(Ended()).ok());
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(export_.Write(Ended()).ok());
    ASSERT_TRUE(WriteAnew(Ended()).ok()) << "of another program run";
  }
  ASSERT_THAT(mlflow_.runs(), SizeIs(1));
  EXPECT_THAT(mlflow_.runs()[0].metrics, SizeIs(8));
  EXPECT_EQ(mlflow_.runs()[0].status, "FINISHED");
}

TEST_F(MlflowExportTest, AnotherAttemptsMetricsAreTakenFromItsBeginning) {
  ASSERT_TRUE(export_.Write(Running()).ok());
  TrialView again = Running();
  again.trial.attempts.push_back({.number = AttemptNumber{2}, .worker = "other"});
  again.measurements = {{.step = 5, .metrics = {{"loss", 2.0}}}};
  ASSERT_TRUE(export_.Write(again).ok());
  EXPECT_EQ(mlflow_.runs()[0].metrics.back()["step"], 5);
  EXPECT_EQ(mlflow_.runs()[0].tags.at("hpo.worker"), "other");
  EXPECT_EQ(mlflow_.runs()[0].tags.at("hpo.attempts"), "2");
}

TEST_F(MlflowExportTest, AStudyThatWasMadeAnewHasItsOwnRuns) {
  ASSERT_TRUE(export_.Write(Running()).ok());
  TrialView later = Running();
  later.trial.created += absl::Hours(1);
  ASSERT_TRUE(export_.Write(later).ok());
  EXPECT_THAT(mlflow_.runs(), SizeIs(2));
}

TEST_F(MlflowExportTest, ARunWhoseAnswerWasLostIsFoundAgain) {
  mlflow_.Fail("runs/create", 0, "", 1, /*done=*/true);
  EXPECT_TRUE(absl::IsUnavailable(export_.Write(Running())));
  ASSERT_TRUE(export_.Write(Running()).ok());
  EXPECT_THAT(mlflow_.runs(), SizeIs(1));
}

TEST_F(MlflowExportTest, WhatIsNotedOfATrialIsItsRunsTagsAndDescription) {
  TrialView view = Ended();
  view.trial.attributes = *Changed({}, {.note = "look at this",
                                        .add_tags = {"good"},
                                        .remove_tags = {},
                                        .set = {{"data", "{\"rows\":1}"}, {"oom_error", "1"}}});
  const std::map<std::string, std::string> tags = ImageOf(view).batch.tags;
  EXPECT_EQ(tags.at("mlflow.note.content"), "look at this");
  EXPECT_EQ(tags.at("good"), "true");
  EXPECT_EQ(tags.at("data"), "{\"rows\":1}");
  EXPECT_EQ(tags.at("hpo.state"), "COMPLETED");
}

TEST_F(MlflowExportTest, ATrialThatHasNotStartedIsLeftOut) {
  TrialView queued;
  queued.trial.id = {.study = "criteria", .number = TrialNumber{1}};
  ASSERT_TRUE(export_.Write(queued).ok());
  EXPECT_TRUE(mlflow_.calls().empty());
}

TEST_F(MlflowExportTest, EveryEndHasAStatusAndAReason) {
  struct Case {
    TrialOutcome outcome;
    const char* status;
    const char* state;
    const char* end;
  };
  const Case cases[] = {
      {StoppedByPruner{.pruner = "median"}, "KILLED", "PRUNED (PRUNER)", "median"},
      {OutOfMemory{.message = "CUDA out of memory"}, "KILLED", "PRUNED (OUT_OF_MEMORY)",
       "CUDA out of memory"},
      {Failed{.message = "line 3"}, "FAILED", "FAILED", "line 3"},
      {Cancelled{.reason = "by hand"}, "KILLED", "CANCELLED", "by hand"}};
  for (const Case& expected : cases) {
    TrialView view = Running();
    view.trial.outcome = expected.outcome;
    view.trial.state = StateOf(expected.outcome);
    const MlflowRunImage image = ImageOf(view);
    EXPECT_EQ(image.status, expected.status);
    EXPECT_EQ(image.batch.tags.at("hpo.state"), expected.state);
    EXPECT_EQ(image.batch.tags.at("hpo.end"), expected.end);
  }
}

}  // namespace
}  // namespace hpo
