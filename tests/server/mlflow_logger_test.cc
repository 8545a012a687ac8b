#include "server/mlflow_logger.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_mlflow.h"

namespace hpo::server {
namespace {

using ::testing::SizeIs;

constexpr char kUri[] = "http://mlflow:5000";
constexpr absl::Duration kPatience = absl::Seconds(20);

TrialId Id(int64_t number) { return {.study = "s", .number = TrialNumber{number}}; }

class MlflowLoggerTest : public ::testing::Test {
 protected:
  void Make(size_t most_waiting = 100) {
    logger_ =
        std::make_unique<MlflowLogger>(kUri,
                                       MlflowLoggerOptions{.first_retry = absl::Milliseconds(1),
                                                           .longest_retry = absl::Milliseconds(4),
                                                           .most_waiting = most_waiting},
                                       std::make_unique<FakeMlflowHttp>(mlflow_));
  }
  void Start() {
    logger_->Start(
        [](const TrialId& id) -> absl::StatusOr<TrialView> {
          TrialView view;
          view.trial.id = id;
          view.trial.state = TrialState::kRunning;
          view.trial.started = absl::FromUnixSeconds(1000);
          return view;
        },
        [this](const std::string&) -> absl::StatusOr<StudyStatus> { return study_; });
  }
  // The study's own left out.
  std::vector<FakeMlflow::Run> TrialRuns() {
    std::vector<FakeMlflow::Run> runs = mlflow_.runs();
    std::erase_if(runs, [](const FakeMlflow::Run& run) { return run.name == "s"; });
    return runs;
  }

  StudyStatus study_{.counts = {.running = 2}, .created = absl::FromUnixSeconds(900)};

  FakeMlflow mlflow_;
  std::unique_ptr<MlflowLogger> logger_;
};

TEST_F(MlflowLoggerTest, ChangedTrialsAreWrittenOnceEach) {
  Make();
  for (int repeat = 0; repeat < 10; ++repeat) {
    logger_->Changed(Id(1));
    logger_->Changed(Id(2));
  }
  EXPECT_EQ(logger_->num_waiting(), 2u);
  Start();
  logger_->Finish(kPatience);
  EXPECT_THAT(TrialRuns(), SizeIs(2));
  EXPECT_EQ(mlflow_.NumCalls("runs/log-batch"), 3u) << "the study's counts did not change";
  logger_->Changed(Id(3));
  EXPECT_EQ(logger_->num_waiting(), 0u) << "nothing more is taken";
}

TEST_F(MlflowLoggerTest, WhileMlflowIsAwayTrialsWaitAndAreTriedAgain) {
  mlflow_.Fail("experiments/get-by-name", 0, "", 1000000);
  Make();
  Start();
  logger_->Changed(Id(1));
  logger_->Changed(Id(2));
  ASSERT_TRUE(mlflow_.AwaitCalls("experiments/get-by-name", 5));
  EXPECT_TRUE(mlflow_.runs().empty());
  mlflow_.Recover();
  logger_->Finish(kPatience);
  EXPECT_THAT(TrialRuns(), SizeIs(2));
}

TEST_F(MlflowLoggerTest, WhatMlflowRefusesIsLeftOutAndTheRestGoesOn) {
  mlflow_.Fail("runs/create", 400, R"({"error_code":"BAD","message":"no"})");
  Make();
  Start();
  logger_->Changed(Id(1));
  ASSERT_TRUE(mlflow_.AwaitCalls("runs/create", 1));
  logger_->Changed(Id(2));
  logger_->Finish(kPatience);
  ASSERT_THAT(TrialRuns(), SizeIs(1));
  EXPECT_EQ(TrialRuns()[0].name, "s #2");
}

TEST_F(MlflowLoggerTest, TheSetOfWaitingTrialsIsBounded) {
  Make(/*most_waiting=*/3);
  for (int64_t number = 0; number < 10; ++number) logger_->Changed(Id(number));
  EXPECT_EQ(logger_->num_waiting(), 3u);
  logger_->Changed(Id(0));
  EXPECT_EQ(logger_->num_waiting(), 3u);
  Start();
  logger_->Finish(kPatience);
  EXPECT_THAT(TrialRuns(), SizeIs(3));
}

TEST_F(MlflowLoggerTest, AnEndWithoutGraceDoesNotWaitForMlflow) {
  mlflow_.Fail("experiments/get-by-name", 0, "", 1000000);
  Make();
  Start();
  logger_->Changed(Id(1));
  ASSERT_TRUE(mlflow_.AwaitCalls("experiments/get-by-name", 1));
  logger_->Finish(absl::ZeroDuration());
  EXPECT_EQ(logger_->num_waiting(), 1u);
}

}  // namespace
}  // namespace hpo::server
