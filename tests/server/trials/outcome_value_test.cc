// What a completed trial has to tell for its study.
#include "server/trials/outcome_value.h"

#include <gmock/gmock.h>

#include <cmath>

#include "nlohmann/json.hpp"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

StudySpec TwoObjectives() {
  StudySpec spec = PlainStudy();
  spec.objectives.push_back({.metric = "latency", .direction = Direction::kMinimize});
  return spec;
}

TEST(CheckedOutcome, ACompletedTrialHasEveryObjectiveAsANumber) {
  const struct {
    Metrics metrics;
    FailureClass failure_class;
    const char* message;
  } cases[] = {
      {{}, FailureClass::kBadConfiguration, "expected the study's objective score, got no metrics"},
      {{{"f1", 0.5}, {"loss", 1.0}},
       FailureClass::kBadConfiguration,
       "expected the study's objectives score and latency, got f1, loss"},
      {{{"f1", 0.5}, {"score", 1.0}},
       FailureClass::kBadConfiguration,
       "expected the study's objective latency, got f1, score"},
      {{{"latency", 2.0}, {"score", std::nan("")}},
       FailureClass::kDiverged,
       "expected a finite number as the study's objective score, got nan; with it came latency"},
      {{{"latency", -INFINITY}, {"score", 1.0}},
       FailureClass::kDiverged,
       "expected a finite number as the study's objective latency, got -inf; with it came score"},
  };
  for (const auto& [metrics, failure_class, message] : cases) {
    SCOPED_TRACE(message);
    const StudySpec spec = metrics.empty() ? PlainStudy() : TwoObjectives();
    const TrialOutcome outcome = CheckedOutcome(spec, Completed{.metrics = metrics});
    ASSERT_TRUE(std::holds_alternative<Failed>(outcome));
    EXPECT_EQ(std::get<Failed>(outcome).failure_class, failure_class);
    EXPECT_EQ(std::get<Failed>(outcome).message, message);
  }
}

TEST(CheckedOutcome, EveryOtherOutcomeStaysAsItIs) {
  const TrialOutcome outcomes[] = {
      Completed{.metrics = {{"score", 0.0}, {"latency", 1e300}, {"loss", std::nan("")}}},
      StoppedByPruner{.pruner = "median", .step = 3, .metrics = {{"loss", 1.0}}},
      OutOfMemory{.message = "out"}, Failed{.message = "bad"}, Cancelled{.reason = "by hand"}};
  for (const TrialOutcome& outcome : outcomes) {
    EXPECT_EQ(OutcomeToJson(CheckedOutcome(TwoObjectives(), outcome)), OutcomeToJson(outcome));
  }
}

TEST(CheckedOutcome, ManyNamesAreNotAllTold) {
  Metrics metrics;
  for (int i = 0; i < 1000; ++i) metrics[absl::StrCat("metric_", i)] = i;
  const TrialOutcome outcome = CheckedOutcome(PlainStudy(), Completed{.metrics = metrics});
  const std::string& message = std::get<Failed>(outcome).message;
  EXPECT_THAT(message, HasSubstr(" and 990 more"));
  EXPECT_LT(message.size(), 300);
}

class ObjectiveTest : public SchedulerFixture {};

TEST_F(ObjectiveTest, ATrialWithoutItFailsAtOnceAndIsNotTheBest) {
  AddStudy(TwoObjectives());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  const TrialOutcome told = Completed{.metrics = {{"f1", 0.9}, {"score", 0.9}}};
  EXPECT_EQ(Finish(lease, told, "once").state, TrialState::kFailed);
  EXPECT_EQ(Finish(lease, told, "once").state, TrialState::kFailed) << "repeated: the same answer";
  const Trial trial = Load("plain", 0).trial;
  EXPECT_EQ(trial.state, TrialState::kFailed);
  EXPECT_FALSE(trial.value.has_value());
  EXPECT_EQ(std::get<Failed>(*trial.outcome).message,
            "expected the study's objective latency, got f1, score");
  EXPECT_EQ(Status("plain").counts.completed, 0);
  EXPECT_FALSE(Status("plain").best_trial.has_value());
  Restart();
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kFailed);
}

}  // namespace
}  // namespace hpo::server
