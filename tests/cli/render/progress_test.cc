#include "cli/render/progress.h"

#include <gtest/gtest.h>

#include "cli/client/terminal.h"
#include "common/command_line/wrapped_line.h"

namespace hpo::cli {
namespace {

StudyStatus HalfDone() {
  StudyStatus study;
  study.spec.name = "criteria";
  study.spec.budget.trials = 12;
  study.counts = {.running = 1, .completed = 5, .pruned = 2, .oom_met = 1};
  study.best_trial = TrialNumber{4};
  study.best_value = 0.713;
  study.wall_clock_used = absl::Seconds(7 * 38);
  return study;
}

TEST(Progress, IsOneLine) {
  EXPECT_EQ(ProgressLine(HalfDone(), {{TrialNumber{8}, 120}}),
            "criteria 7/12 | best 0.713 (#4) | 1 running (#8 step 120) | OOM 1 met, 0 predicted | "
            "time left 3m10s");
}

TEST(Progress, BeforeTheFirstTrialNothingIsKnown) {
  StudyStatus study;
  study.spec.name = "criteria";
  EXPECT_EQ(ProgressLine(study, {}),
            "criteria 0 | best - | 0 running | OOM 0 met, 0 predicted | time left unknown");
}

TEST(Progress, AFinishedStudySaysSo) {
  StudyStatus study = HalfDone();
  study.finished = true;
  study.counts.running = 0;
  EXPECT_EQ(ProgressLine(study, {}),
            "criteria 7/12 | best 0.713 (#4) | 0 running | OOM 1 met, 0 predicted | finished");
}

TEST(Progress, ManyRunningTrialsAreCountedOnly) {
  StudyStatus study = HalfDone();
  study.counts.running = 5;
  RunningSteps running;
  for (int i = 0; i < 5; ++i) running[TrialNumber{i}] = i;
  EXPECT_NE(ProgressLine(study, running).find("| 5 running |"), std::string::npos);
  running.erase(TrialNumber{4});
  EXPECT_NE(ProgressLine(study, running).find("(#0, #1 step 1, #2 step 2, #3 step 3)"),
            std::string::npos);
}

TEST(Progress, TimeLeftIsTheSoonerEnd) {
  StudyStatus study = HalfDone();
  EXPECT_EQ(TimeLeft(study), absl::Seconds(5 * 38));
  study.spec.budget.wall_clock = absl::Seconds(7 * 38 + 60);
  EXPECT_EQ(TimeLeft(study), absl::Seconds(60));
  study.spec.budget.wall_clock = absl::Seconds(1);
  EXPECT_EQ(TimeLeft(study), absl::ZeroDuration());
  study.spec.budget = {};
  EXPECT_EQ(TimeLeft(study), std::nullopt);
}

TEST(Progress, WhatHappensWithoutNews) {
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  StudyStatus study = HalfDone();
  Trial trial;
  trial.id.number = TrialNumber{8};
  trial.started = now - absl::Seconds(130);
  EXPECT_EQ(AwaitedLine(study, {trial}, now), "running: trial 8 for 2m10s; 7 of 12 trials ended");
  trial.last_measurement = Measurement{.step = 120};
  study.waiting_for = "b: no configuration found";
  EXPECT_EQ(AwaitedLine(study, {trial}, now),
            "running: trial 8 for 2m10s (step 120); 7 of 12 trials ended; waits: b: no "
            "configuration found");
  EXPECT_NE(AwaitedLine(study, std::vector<Trial>(6, trial), now).find(", 2 more; 7 of 12"),
            std::string::npos);
  study.workers = {{.name = "w", .alive = true, .notice = "takes no trials: disk full"}};
  EXPECT_EQ(AwaitedLine(study, {}, now),
            "waits: b: no configuration found; worker w takes no trials: disk full");
  EXPECT_EQ(AwaitedLine(StudyStatus{}, {}, now), "");
}

TEST(Progress, AFinishedTrialIsOneLine) {
  const Trial trial{.id = {.study = "criteria", .number = TrialNumber{7}},
                    .state = TrialState::kCompleted,
                    .demonstration = true,
                    .outcome = Completed{.metrics = {{"macro_f1", 0.7131}}},
                    .started = absl::FromUnixSeconds(100),
                    .ended = absl::FromUnixSeconds(162)};
  EXPECT_EQ(FinishedLine(trial, HalfDone()),
            "trial 7 COMPLETED (demonstration): macro_f1 0.7131 in 1m2s; best is #4 with "
            "0.713");
}

TEST(Progress, OfALongErrorThereIsOneShortLine) {
  const Trial trial{.id = {.number = TrialNumber{7}},
                    .state = TrialState::kFailed,
                    .outcome = Failed{.message = "ValueError: " + std::string(500, 'x')}};
  const std::string line = FinishedLine(trial, {});
  EXPECT_EQ(line.find("trial 7 FAILED (INTERNAL): ValueError: xxx"), 0u) << line;
  EXPECT_LT(DisplayWidth(line), 200);
  EXPECT_NE(line.find("x…"), std::string::npos) << line;
}

TEST(Progress, SeveralObjectivesHaveAFrontAndNoBest) {
  StudyStatus study = HalfDone();
  study.front = {{.number = TrialNumber{4}}, {.number = TrialNumber{2}}};
  EXPECT_EQ(ProgressLine(study, {}).find("criteria 7/12 | front #4 #2 | 1 running"), 0u);
  EXPECT_EQ(FinishedLine({.id = {.number = TrialNumber{2}}}, study),
            "trial 2 QUEUED: ; front #4 #2");
}

}  // namespace
}  // namespace hpo::cli
