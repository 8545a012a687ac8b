#include "server/studies/study_standing.h"

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

const std::string kUsedUpByFailures =
    "all trials of the study have failed; to go on: hpo trial retry --failed --study s";

StudySpec SpecOf(std::optional<int64_t> trials, std::optional<absl::Duration> wall_clock) {
  StudySpec spec;
  spec.name = "s";
  spec.budget.trials = trials;
  spec.budget.wall_clock = wall_clock;
  spec.objectives = {Objective{.metric = "f1", .direction = Direction::kMaximize}};
  return spec;
}

struct Case {
  const char* name;
  HistoryVerdict verdict;
  StudySituation situation;
  bool hands_out = false;
  bool budget_left = false;
  bool finished = false;
  std::string termination;
};

// Of a study of 10 trials and one hour.
std::vector<Case> BudgetCases() {
  const absl::Duration hour = absl::Hours(1);
  return {
      {"nothing has run", {}, {}, true, true, false, ""},
      {"all are handed out, one runs",
       {},
       {.num_budgeted = 10, .open = {.num_held = 1}},
       true,
       false,
       false,
       ""},
      {"all are handed out, one waits",
       {},
       {.num_budgeted = 10, .open = {.num_queued = 1}},
       true,
       false,
       false,
       ""},
      {"all have ended", {}, {.num_budgeted = 10}, true, false, true, ""},
      {"all have failed",
       {.all_failed = true},
       {.num_budgeted = 10},
       true,
       false,
       true,
       kUsedUpByFailures},
      {"all so far have failed", {.all_failed = true}, {.num_budgeted = 9}, true, true, false, ""},
      {"the hour is over, one waits",
       {.all_failed = true},
       {.open = {.num_queued = 1, .wall_clock = hour}},
       false,
       false,
       true,
       ""},
      {"the hour is over, one runs",
       {},
       {.open = {.num_held = 1, .wall_clock = hour}},
       false,
       false,
       false,
       ""},
  };
}

// Of the same study.
std::vector<Case> EndedCases() {
  const sampler::TooManyFailures failure{.why = "5 trials failed", .last = TrialNumber{4}};
  const auto ordered = [](StudyOrder order, size_t num_held) {
    return StudySituation{.order = order, .open = {.num_held = num_held}};
  };
  return {
      {"no progress", {.termination = "no progress"}, {}, true, false, true, "no progress"},
      {"the regret bound comes first",
       {.termination = "no progress"},
       {.regret_bounded = "bounded"},
       true,
       false,
       true,
       "bounded"},
      {"the target comes first",
       {.termination = "no progress", .target_reached = "trial 3"},
       {.regret_bounded = "bounded"},
       false,
       false,
       true,
       "trial 3"},
      {"too many failures", {.failure = failure}, {}, false, false, true, ""},
      {"too many failures, one runs",
       {.failure = failure},
       {.open = {.num_held = 1}},
       false,
       false,
       false,
       ""},
      {"paused", {}, ordered(StudyOrder::kPause, 0), false, false, false, ""},
      {"stopped", {.all_failed = true}, ordered(StudyOrder::kStop, 0), false, false, true, ""},
      {"stopped, one runs", {}, ordered(StudyOrder::kStop, 1), false, false, false, ""},
  };
}

void Check(const std::vector<Case>& cases) {
  const StudySpec spec = SpecOf(10, absl::Hours(1));
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const StudyStanding standing = StandingOf(spec, each.verdict, each.situation);
    EXPECT_EQ(standing.order, each.situation.order);
    EXPECT_EQ(standing.failure, each.verdict.failure);
    EXPECT_EQ(standing.target_reached, each.verdict.target_reached);
    EXPECT_EQ(standing.hands_out, each.hands_out);
    EXPECT_EQ(standing.budget_left, each.budget_left);
    EXPECT_EQ(standing.finished, each.finished);
    EXPECT_EQ(standing.termination, each.termination);
  }
}

TEST(StudyStanding, ABudgetLeavesRoomOrIsUsedUp) { Check(BudgetCases()); }

TEST(StudyStanding, OrdersTargetsAndFailuresEndAStudy) { Check(EndedCases()); }

TEST(StudyStanding, ABudgetWithoutLimitsIsNeverUsedUp) {
  const StudyStanding standing =
      StandingOf(SpecOf(std::nullopt, std::nullopt), {},
                 {.num_budgeted = 1'000'000, .open = {.wall_clock = absl::Hours(10'000)}});
  EXPECT_TRUE(standing.budget_left);
  EXPECT_FALSE(standing.finished);
}

TEST(StudyStanding, TellsHowManyMoreWorkersWouldGetATrial) {
  const StudySpec spec = SpecOf(10, absl::Hours(1));
  const StudySituation some{.num_budgeted = 7, .open = {.num_queued = 2, .num_held = 4}};
  EXPECT_EQ(StandingOf(spec, {}, some).runnable, 5) << "two wait, and three are not proposed yet";
  EXPECT_EQ(StandingOf(spec, {.termination = "no progress"}, some).runnable, 2);
  EXPECT_EQ(StandingOf(spec, {}, {.num_budgeted = 10, .open = {.num_held = 4}}).runnable, 0);
  EXPECT_EQ(StandingOf(SpecOf(std::nullopt, absl::Hours(1)), {}, some).runnable, std::nullopt);
  StudySituation paused = some;
  paused.order = StudyOrder::kPause;
  EXPECT_EQ(StandingOf(spec, {}, paused).runnable, 0);
  StudySituation late = some;
  late.open.wall_clock = absl::Hours(2);
  EXPECT_EQ(StandingOf(spec, {}, late).runnable, 0);
}

TEST(StudyStanding, AHistoryWithoutTrialsSaysNothing) {
  const HistoryVerdict verdict =
      JudgeHistory(sampler::History(), SpecOf(10, std::nullopt), TrialNumber{0});
  EXPECT_EQ(verdict.termination, "");
  EXPECT_EQ(verdict.target_reached, "");
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_FALSE(verdict.all_failed);
}

}  // namespace
}  // namespace hpo::server
