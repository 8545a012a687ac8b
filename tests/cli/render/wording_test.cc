#include "cli/render/wording.h"

#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

TEST(Wording, DurationsHaveTwoUnitsAtMost) {
  const std::pair<absl::Duration, const char*> cases[] = {
      {absl::ZeroDuration(), "0s"}, {absl::Milliseconds(900), "0s"},
      {absl::Seconds(45), "45s"},   {absl::Seconds(190), "3m10s"},
      {absl::Minutes(60), "1h"},    {absl::Minutes(72) + absl::Seconds(59), "1h12m"},
      {absl::Hours(52), "2d4h"},    {-absl::Seconds(5), "0s"},
  };
  for (const auto& [duration, text] : cases) EXPECT_EQ(ShortDuration(duration), text);
}

TEST(Wording, NumbersHaveTheDigitsThatTellThemApart) {
  EXPECT_EQ(DigitsThatTell({}), 4);
  EXPECT_EQ(DigitsThatTell({0.5, 0.5, 0.25}), 4);
  EXPECT_EQ(DigitsThatTell({0.98231, 0.98234}), 5);
  EXPECT_EQ(DigitsThatTell({1.0, 1.0 + 1e-15}), 12);
  EXPECT_EQ(NumberOf(0.98231, 4), "0.9823");
}

TEST(Wording, TheValueOfATrialIsTheLatestThatIsKnown) {
  Trial trial;
  EXPECT_EQ(MetricOf(trial, "f1"), std::nullopt);
  trial.last_measurement = Measurement{.metrics = {{"f1", 0.1}}};
  EXPECT_EQ(MetricOf(trial, "f1"), 0.1);
  trial.outcome = StoppedByPruner{};
  EXPECT_EQ(MetricOf(trial, "f1"), 0.1);
  trial.outcome = StoppedByPruner{.metrics = {{"f1", 0.2}}};
  EXPECT_EQ(MetricOf(trial, "f1"), 0.2);
  trial.outcome = Completed{.metrics = {{"f1", 0.3}}};
  EXPECT_EQ(MetricOf(trial, "f1"), 0.3);
}

TEST(Wording, UnknownIsADash) {
  EXPECT_EQ(OrDash(std::optional<double>()), "-");
  EXPECT_EQ(OrDash(0.71312), "0.71312");
  EXPECT_EQ(OrDash(Bytes{}), "-");
  EXPECT_EQ(OrDash(GiB(2)), "2.00 GiB");
  EXPECT_EQ(LocalTime(absl::InfinitePast()), "-");
}

TEST(Wording, PlansShowHowTheBatchIsSplit) {
  EXPECT_EQ(DescribePlan({.effective_batch = 64, .micro_batch = 8}), "64 = 8 x 8");
  EXPECT_EQ(DescribePlan({.effective_batch = 64, .micro_batch = 24}), "64 = 2 x 24 + 16");
  EXPECT_EQ(DescribePlan({.effective_batch = 8,
                          .micro_batch = 8,
                          .checkpointing = true,
                          .precision = Precision::kBfloat16}),
            "8 = 1 x 8, checkpointing, bfloat16");
}

TEST(Wording, EveryEndingIsASentence) {
  const struct {
    TrialOutcome outcome;
    TrialState state;
    const char* shown;
    const char* sentence;
  } cases[] = {
      {Completed{.metrics = {{"macro_f1", 0.7131}}}, TrialState::kCompleted, "COMPLETED",
       "macro_f1 0.7131"},
      {StoppedByPruner{.pruner = "median", .step = 40, .metrics = {{"f1", 0.25}}},
       TrialState::kPruned, "PRUNED (PRUNER)", "stopped by the median pruner at step 40, f1 0.25"},
      {OutOfMemory{
           .requested = MiB(20), .peak = GiB(1), .limit = GiB(2), .phase = "backward", .step = 3},
       TrialState::kPruned, "PRUNED (OUT_OF_MEMORY)",
       "out of memory in backward at step 3: wanted 20.00 MiB more at a peak of 1.00 GiB, allowed "
       "2.00 GiB"},
      {OutOfMemory{.predicted = true, .limit = GiB(8), .needed = GiB(9)}, TrialState::kPruned,
       "PRUNED (PREDICTED_OUT_OF_MEMORY)", "not started: needs 9.00 GiB, allowed 8.00 GiB"},
      {OutOfMemory{.kind = OomKind::kHost}, TrialState::kPruned, "PRUNED (HOST_OUT_OF_MEMORY)",
       "out of host memory in a step at step 0: wanted - more at a peak of -, allowed -"},
      {Failed{.failure_class = FailureClass::kBadData, .message = "no label 'maybe'"},
       TrialState::kFailed, "FAILED (BAD_DATA)", "no label 'maybe'"},
      {Cancelled{.reason = "by hand"}, TrialState::kCancelled, "CANCELLED", "by hand"},
  };
  for (const auto& test : cases) {
    const Trial trial{.state = test.state, .outcome = test.outcome};
    EXPECT_EQ(DescribeState(trial), test.shown);
    EXPECT_EQ(DescribeEnd(trial), test.sentence);
  }
  EXPECT_EQ(DescribeEnd(Trial()), "");
  EXPECT_EQ(DescribeState(Trial{.state = TrialState::kRunning}), "RUNNING");
}

TEST(Wording, ProgressAndOoms) {
  StudyStatus study;
  study.counts = {
      .completed = 5, .pruned = 2, .oom_met = 2, .oom_predicted = 1, .oom_recovered = 1};
  EXPECT_EQ(DescribeProgress(study), "7 (no limit)");
  study.spec.budget.trials = 12;
  EXPECT_EQ(DescribeProgress(study), "7 of 12");
  EXPECT_EQ(DescribeOoms(study.counts), "OOM 2 met (1 recovered), 1 predicted");
  EXPECT_EQ(DescribeOoms(TrialCounts()), "OOM 0 met, 0 predicted");
}

}  // namespace
}  // namespace hpo::cli
