#include "cli/commands/studies/watch.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

StudyStatus Running() {
  StudyStatus study;
  study.spec.name = "criteria";
  study.spec.budget.trials = 4;
  study.counts = {.running = 1};
  return study;
}

TrialEvent Change(const std::string& kind, TrialState state) {
  TrialEvent change{.kind = kind};
  change.trial.id.number = TrialNumber{2};
  change.trial.state = state;
  if (state == TrialState::kCompleted) change.trial.outcome = Completed{.metrics = {{"f1", 0.5}}};
  return change;
}

TEST(WatchDisplay, APipeGetsALineForEachFinishedTrial) {
  std::ostringstream out;
  WatchDisplay display(Terminal{}, out);
  display.Show(Running());
  display.Show(Change("started", TrialState::kRunning), Running());
  display.Show(Change("measured", TrialState::kRunning), Running());
  display.Show(Change("replanned", TrialState::kRunning), Running());
  display.Show(Change("preempt_ordered", TrialState::kRunning), Running());
  display.Show(Change("finished", TrialState::kCompleted), Running());
  display.Close();
  EXPECT_EQ(out.str(),
            "trial 2 met an out-of-memory error: goes on with a smaller plan for the same batch\n"
            "trial 2 will be given back by its worker\n"
            "trial 2 COMPLETED: f1 0.5\n");
}

TEST(WatchDisplay, ARecoveryShowsBothPlans) {
  std::ostringstream out;
  WatchDisplay display(Terminal{}, out);
  TrialEvent change = Change("replanned", TrialState::kRunning);
  change.trial.attempts.push_back(
      {.plan = {.effective_batch = 64, .micro_batch = 64},
       .final_plan = MemoryPlan{.effective_batch = 64, .micro_batch = 32}});
  display.Show(change, Running());
  EXPECT_EQ(
      out.str(),
      "trial 2 met an out-of-memory error: goes on with batch 64 = 2 x 32 in place of 64 = 1 x "
      "64\n");
}

TEST(WatchDisplay, ATerminalGetsOneLineThatIsRedrawn) {
  std::ostringstream out;
  WatchDisplay display(Terminal{.interactive = true, .columns = 21}, out);
  display.Show(Running());
  EXPECT_EQ(out.str(), "\r\x1b[Kcriteria 0/4 | best…");
  out.str("");
  display.Show(Change("finished", TrialState::kCompleted), Running());
  EXPECT_EQ(out.str(), "\r\x1b[Ktrial 2 COMPLETED: f1 0.5\n\r\x1b[Kcriteria 0/4 | best…");
  out.str("");
  display.Close();
  EXPECT_EQ(out.str(), "\n");
}

TEST(WatchLines, EachEventIsAnObjectOnALineOfItsOwn) {
  std::ostringstream out;
  WatchLines lines(out);
  lines.Show(Running());
  lines.Show(Running());  // nothing has changed
  lines.Show(Change("finished", TrialState::kCompleted), Running());
  lines.End(Running());
  std::vector<nlohmann::json> events;
  std::istringstream written(out.str());
  for (std::string line; std::getline(written, line);) {
    events.push_back(nlohmann::json::parse(line));
    EXPECT_EQ(events.back()["study"], "criteria");
  }
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0]["event"], "study");
  EXPECT_EQ(events[0]["status"]["counts"]["running"], 1);
  EXPECT_EQ(events[1]["event"], "finished");
  EXPECT_EQ(events[1]["trial"]["number"], 2);
  EXPECT_EQ(events[2]["event"], "end");
}

TEST(WatchDisplay, TheStepOfARunningTrialIsShown) {
  std::ostringstream out;
  WatchDisplay display(Terminal{.interactive = true}, out);
  TrialEvent measured = Change("measured", TrialState::kRunning);
  measured.trial.last_measurement = Measurement{.step = 120};
  display.Show(measured, Running());
  EXPECT_NE(out.str().find("1 running (#2 step 120)"), std::string::npos) << out.str();
  out.str("");
  StudyStatus idle = Running();
  idle.counts.running = 0;
  display.Show(Change("finished", TrialState::kCompleted), idle);
  EXPECT_NE(out.str().find("| 0 running |"), std::string::npos) << out.str();
}

TEST(WatchDisplay, AReminderIsALineOrRedrawn) {
  int num_said = 0;
  std::ostringstream pipe;
  WatchDisplay lines(Terminal{}, pipe, [&] { ++num_said; });
  lines.Remind("running: trial 2 for 25s");
  EXPECT_EQ(pipe.str(), "running: trial 2 for 25s\n");
  EXPECT_EQ(num_said, 0) << "it is no news";
  lines.Show(Change("finished", TrialState::kCompleted), Running());
  EXPECT_EQ(num_said, 1);
  std::ostringstream out;
  WatchDisplay display(Terminal{.interactive = true}, out);
  display.Remind("running: trial 2 for 25s");
  display.Remind("running: trial 2 for 38s");
  EXPECT_EQ(out.str(), "\r\x1b[Krunning: trial 2 for 25s\r\x1b[Krunning: trial 2 for 38s");
}

TEST(WatchDisplay, WhatIsWaitedForIsSaidOnce) {
  std::ostringstream out;
  WatchDisplay display(Terminal{}, out);
  StudyStatus waiting = Running();
  waiting.waiting_for = "no worker is connected";
  display.Show(waiting);
  display.Show(waiting);
  display.Show(Running());
  display.Show(waiting);
  EXPECT_EQ(out.str(), "waits: no worker is connected\nwaits: no worker is connected\n");
}

}  // namespace
}  // namespace hpo::cli
