#include "cli/memory/memory_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/memory_text.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

Attempt Ran(int64_t number) {
  Attempt attempt;
  attempt.number = AttemptNumber{number};
  attempt.state = AttemptState::kFinished;
  attempt.worker = "host:gpu0";
  attempt.capacity = GiB(10);
  attempt.predicted = GiB(8);
  attempt.plan = {.effective_batch = 64, .micro_batch = 16};
  attempt.memory = MemoryReport{
      .live_peak = GiB(5), .reserved_peak = GiB(6), .limit = GiB(9), .peak_phase = "backward"};
  return attempt;
}

Trial Completed1() {
  Trial trial;
  trial.id = {.study = "s", .number = TrialNumber{7}};
  trial.state = TrialState::kCompleted;
  trial.outcome = Completed{.metrics = {{"f1", 0.5}}};
  trial.attempts = {Ran(1)};
  return trial;
}

Trial Ended(const OutOfMemory& oom) {
  Trial trial = Completed1();
  trial.state = TrialState::kPruned;
  trial.outcome = oom;
  return trial;
}

TEST(ExplainTrial, ComparesTheNearestMeasurementOfTheDevice) {
  Trial trial = Completed1();
  TrialExplanation explained = ExplainTrial(trial);
  EXPECT_EQ(explained.attempts[0].measured, "reserved");
  EXPECT_EQ(explained.attempts[0].used, GiB(6));
  EXPECT_DOUBLE_EQ(*explained.attempts[0].error, -0.25);
  EXPECT_EQ(explained.attempts[0].lesson, "a measurement: the estimate was 25.0 % too high");
  EXPECT_EQ(explained.verdict, "it fit: 6.00 GiB of 9.00 GiB (33.3 % to spare), peak in backward");

  trial.attempts[0].memory->device_peak = GiB(8) + GiB(1);
  explained = ExplainTrial(trial);
  EXPECT_EQ(explained.attempts[0].measured, "device");
  EXPECT_EQ(explained.attempts[0].lesson, "a measurement: the estimate was 12.5 % too low");

  trial.attempts[0].memory->device_peak = Bytes{};
  trial.attempts[0].memory->reserved_peak = Bytes{};
  EXPECT_EQ(ExplainTrial(trial).attempts[0].measured, "live");
}

TEST(ExplainTrial, AReplanIsNotComparedWithItsFirstPrediction) {
  Trial trial = Completed1();
  trial.attempts[0].final_plan = MemoryPlan{.effective_batch = 64, .micro_batch = 8};
  trial.attempts[0].memory->num_ooms = 1;
  const TrialExplanation explained = ExplainTrial(trial);
  EXPECT_TRUE(explained.attempts[0].replanned);
  EXPECT_FALSE(explained.attempts[0].error.has_value());
  EXPECT_EQ(explained.attempts[0].lesson, "a bound: micro-batch 16 needs more than 9.00 GiB");
  const std::string text = ExplanationText(explained, 0);
  EXPECT_THAT(text, HasSubstr("64 = 4 x 16, then 64 = 8 x 8  8.00 GiB for the first"));
  EXPECT_EQ(ExplanationJson(explained)["attempts"][0]["first_micro_batch"], 16);
  EXPECT_THAT(explained.verdict, HasSubstr("after 1 out-of-memory errors it recovered from"));
}

TEST(ExplainTrial, EachKindOfOomHasItsOwnVerdictAndLesson) {
  const struct {
    OomKind kind;
    const char* verdict;
    const char* lesson;
  } cases[] = {
      {OomKind::kConfiguration, "too big for this card", "a bound: micro-batch 4 needs more"},
      {OomKind::kLatePeak, "after steps that fit", "a bound: micro-batch 4 needs more"},
      {OomKind::kDirtyDevice, "other processes held", "nothing: others held the memory"},
      {OomKind::kFragmentation, "fragmented", "nothing: the free memory was fragmented"},
      {OomKind::kHost, "not the card", "nothing: it was the host's memory"},
  };
  for (const auto& [kind, verdict, lesson] : cases) {
    SCOPED_TRACE(verdict);
    const TrialExplanation explained =
        ExplainTrial(Ended({.kind = kind,
                            .limit = GiB(9),
                            .phase = "backward",
                            .plan = {.effective_batch = 64, .micro_batch = 4}}));
    EXPECT_THAT(explained.verdict, HasSubstr(verdict));
    EXPECT_THAT(explained.attempts[0].lesson, HasSubstr(lesson));
  }
}

TEST(ExplainTrial, APredictedOomWasNotStarted) {
  Trial trial = Ended({.predicted = true, .limit = GiB(8), .needed = GiB(9)});
  trial.attempts.clear();
  const TrialExplanation explained = ExplainTrial(trial);
  EXPECT_THAT(explained.verdict, HasSubstr("was not started: needs 9.00 GiB, allowed 8.00 GiB"));
  EXPECT_THAT(ExplanationText(explained, 0), testing::StartsWith("trial #7 PRUNED"));
  EXPECT_EQ(ExplanationJson(explained)["attempts"].size(), 0u);
}

TEST(ExplainTrial, OnlyTheLastFinishedAttemptTeaches) {
  Trial trial = Completed1();
  Attempt lost = Ran(1);
  lost.state = AttemptState::kLost;
  lost.end_note = "the worker went away";
  lost.memory = std::nullopt;
  trial.attempts = {lost, Ran(2)};
  const TrialExplanation explained = ExplainTrial(trial);
  EXPECT_EQ(explained.attempts[0].lesson, "nothing: the worker went away");
  EXPECT_FALSE(explained.attempts[0].error.has_value());
  EXPECT_THAT(explained.attempts[1].lesson, HasSubstr("a measurement"));
}

TEST(ExplainTrial, WhatHasNotEndedOrWasStoppedTeachesNothing) {
  Trial open = Completed1();
  open.state = TrialState::kRunning;
  open.outcome = std::nullopt;
  open.attempts[0].state = AttemptState::kLeased;
  EXPECT_EQ(ExplainTrial(open).verdict, "it has not ended yet");
  EXPECT_EQ(ExplainTrial(open).attempts[0].lesson, "nothing: it has not finished");

  Trial stopped = Completed1();
  stopped.outcome = StoppedByPruner{.pruner = "median", .step = 3};
  EXPECT_THAT(ExplainTrial(stopped).verdict, HasSubstr("memory did not end it: stopped by"));
  EXPECT_EQ(ExplainTrial(stopped).attempts[0].lesson, "nothing: it may not have met its peak");
}

TEST(ExplanationJson, WhatIsUnknownIsNull) {
  Trial trial = Completed1();
  trial.attempts[0].predicted = Bytes{};
  trial.attempts[0].memory = std::nullopt;
  const nlohmann::ordered_json attempt = ExplanationJson(ExplainTrial(trial))["attempts"][0];
  EXPECT_TRUE(attempt["predicted_bytes"].is_null());
  EXPECT_TRUE(attempt["used_bytes"].is_null());
  EXPECT_TRUE(attempt["error"].is_null());
  EXPECT_EQ(attempt["allowed_bytes"], GiB(10).count);
}

TEST(CompareText, ShowsWhatIsMoreAndLess) {
  memory::MemoryAnswer before{.estimate = {.weights = GiB(1), .activations = GiB(9)},
                              .fits = false};
  before.plan = {.effective_batch = 64, .micro_batch = 64};
  memory::MemoryAnswer after = before;
  after.estimate.activations = GiB(3);
  after.estimate.weights = GiB(2);
  after.fits = true;
  const std::string text = CompareText(before, after, 0);
  EXPECT_THAT(text, HasSubstr("activations    9.00 GiB  3.00 GiB  -6.00 GiB"));
  EXPECT_THAT(text, HasSubstr("+1.00 GiB"));
  EXPECT_THAT(text, HasSubstr("before: does not fit"));
  EXPECT_THAT(text, HasSubstr("after: fits"));
}

}  // namespace
}  // namespace hpo::cli
