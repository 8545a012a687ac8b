#include "worker/trainer/memory/recovery_policy.h"

#include "common/study/trial.h"
#include "gtest/gtest.h"
#include "worker/trainer/memory/thrash_guard.h"

namespace hpo::trainer {
namespace {

using enum OomKind;
using enum RecoveryAction;

struct Row {
  const char* what;
  RecoveryCase now;
  RecoveryAction expected;
};

const Row kPolicyRows[] = {
    {"A shrinks", {.kind = kConfiguration}, kShrink},
    {"D shrinks", {.kind = kLatePeak, .steps_done = true}, kShrink},
    {"A at one row replaces the workspaces",
     {.kind = kConfiguration, .can_shrink = false},
     kRenewWorkspaces},
    {"A at one row, once more",
     {.kind = kConfiguration, .can_shrink = false, .workspaces_renewed = true},
     kEnd},
    {"D at one row, once more",
     {.kind = kLatePeak, .can_shrink = false, .steps_done = true, .workspaces_renewed = true},
     kEnd},
    {"B before the first step is queued again", {.kind = kDirtyDevice}, kEnd},
    {"B shrinks where steps would be lost", {.kind = kDirtyDevice, .steps_done = true}, kShrink},
    {"B with nothing smaller: others' memory is not ours to free",
     {.kind = kDirtyDevice, .can_shrink = false, .steps_done = true},
     kEnd},
    {"C runs the same again", {.kind = kFragmentation}, kRedo},
    {"C again shrinks", {.kind = kFragmentation, .redos = 1}, kShrink},
    {"C under the policy strict", {.kind = kFragmentation, .can_shrink = false}, kRedo},
    {"C again under the policy strict",
     {.kind = kFragmentation, .can_shrink = false, .redos = 1},
     kRenewWorkspaces},
    {"E runs the same again", {.kind = kHost}, kRedo},
    {"E again shrinks", {.kind = kHost, .redos = 1}, kShrink},
    {"E with nothing smaller: workspaces are not the host's",
     {.kind = kHost, .can_shrink = false, .redos = 1},
     kEnd},
};

TEST(DecideRecovery, EveryKindHasAVerdictOfItsOwn) {
  for (const Row& row : kPolicyRows) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(DecideRecovery(row.now), row.expected);
  }
}

TEST(DecideRecovery, EveryLadderEnds) {
  for (const OomKind kind : {kConfiguration, kDirtyDevice, kFragmentation, kLatePeak, kHost}) {
    RecoveryCase now{.kind = kind, .steps_done = true};
    int smaller_plans = 3;
    int answers = 0;
    for (RecoveryAction action = DecideRecovery(now); action != kEnd;
         action = DecideRecovery(now)) {
      ASSERT_LT(++answers, 10) << Name(kind);
      if (action == kRedo) ++now.redos;
      if (action == kRenewWorkspaces) now.workspaces_renewed = true;
      if (action == kShrink) now.can_shrink = --smaller_plans > 0;
    }
  }
}

TEST(ThrashGuard, WantsTwoRisingStepsInARow) {
  ThrashGuard guard;
  EXPECT_FALSE(guard.AfterStep(0));
  EXPECT_FALSE(guard.AfterStep(3));
  EXPECT_FALSE(guard.AfterStep(3));  // a step without: not thrashing
  EXPECT_FALSE(guard.AfterStep(4));
  EXPECT_TRUE(guard.AfterStep(5));
  EXPECT_FALSE(guard.AfterStep(6));  // counted from 0
  EXPECT_TRUE(guard.AfterStep(7));
}

TEST(ThrashGuard, WhatARecoveryTookDoesNotCount) {
  ThrashGuard guard;
  EXPECT_FALSE(guard.AfterStep(1));
  guard.StartFrom(9);
  EXPECT_FALSE(guard.AfterStep(9));
  EXPECT_FALSE(guard.AfterStep(10));
  EXPECT_TRUE(guard.AfterStep(11));
}

}  // namespace
}  // namespace hpo::trainer
