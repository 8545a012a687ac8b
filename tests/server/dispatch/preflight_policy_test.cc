#include "server/dispatch/preflight_policy.h"

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

TEST(PreflightPolicy, WhatIsSureIsGivenAndOneAtATimeIsHeld) {
  EXPECT_EQ(StepFor(/*sure=*/true, /*other_held=*/true), PreflightStep::kGive);
  EXPECT_EQ(StepFor(/*sure=*/false, /*other_held=*/false), PreflightStep::kHold);
  EXPECT_EQ(StepFor(/*sure=*/false, /*other_held=*/true), PreflightStep::kWait);
}

TEST(PreflightPolicy, WhatIsHeldWaitsForItsReport) {
  struct Case {
    HeldSituation situation;
    PreflightStep step;
  };
  const Case cases[] = {
      {{}, PreflightStep::kWait},
      {{.held_for = kLongestDryRun}, PreflightStep::kGive},
      {{.answered = true}, PreflightStep::kGive},
      {{.answered = true, .sure = true}, PreflightStep::kGive},
      {{.answered = true, .sure = true, .fits = false}, PreflightStep::kDrop},
      {{.sure = true}, PreflightStep::kGive},
      {{.sure = true, .fits = false}, PreflightStep::kDrop},
      {{.may_dry_run = false}, PreflightStep::kGive},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    EXPECT_EQ(StepForHeld(c.situation), c.step);
  }
  EXPECT_FALSE(IsOverdue({.answered = true, .held_for = kLongestDryRun}));
}

TEST(PreflightPolicy, OnlyAMeasuredNeedRefuses) {
  EXPECT_TRUE(IsRefused(PreflightState::kMeasured, /*fits=*/false));
  EXPECT_FALSE(IsRefused(PreflightState::kMeasured, /*fits=*/true));
  EXPECT_FALSE(IsRefused(PreflightState::kUncertain, /*fits=*/false));
  EXPECT_FALSE(IsRefused(PreflightState::kFailed, /*fits=*/false));
}

TEST(PreflightPolicy, LooksAheadWhileTheWorkerIsBusy) {
  EXPECT_TRUE(LooksAhead(/*runs_trial=*/true, /*holds=*/false, /*num_before=*/0));
  EXPECT_FALSE(LooksAhead(/*runs_trial=*/false, /*holds=*/false, /*num_before=*/0));
  EXPECT_FALSE(LooksAhead(/*runs_trial=*/true, /*holds=*/true, /*num_before=*/0));
  EXPECT_FALSE(LooksAhead(/*runs_trial=*/true, /*holds=*/false, kMostLookAheads));
}

TEST(PreflightPolicy, DryRunsAreFewerThanHalfOfTheTrials) {
  EXPECT_FALSE(SavesDryRuns(/*num_dry_runs=*/7, /*num_trials=*/0));
  EXPECT_TRUE(SavesDryRuns(/*num_dry_runs=*/8, /*num_trials=*/0));
  EXPECT_FALSE(SavesDryRuns(/*num_dry_runs=*/22, /*num_trials=*/60));
  EXPECT_TRUE(SavesDryRuns(/*num_dry_runs=*/23, /*num_trials=*/60));
}

}  // namespace
}  // namespace hpo::server
