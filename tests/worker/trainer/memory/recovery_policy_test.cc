#include "worker/trainer/memory/recovery_policy.h"

#include <utility>
#include <vector>

#include "common/study/trial.h"
#include "gmock/gmock.h"
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

// What a trial has tried when something new happens.
const RecoveryState kNothingTried;
const RecoveryState kRedone{.redos = {{kFragmentation, 1}, {kHost, 1}}};
const RecoveryState kRenewed{.workspaces_renewed = true};
// The answer to the error was to shrink.
const RecoveryState kShrinking{.now = {.kind = kLatePeak, .steps_done = true}};
const RecoveryState kShrinkingOthers{.now = {.kind = kDirtyDevice, .steps_done = true}};
const RecoveryState kShrinkingUncertain{.now = {.kind = kConfiguration, .workspaces_renewed = true},
                                        .certain = false};
const RecoveryState kShrinkingRenewed{.now = {.kind = kConfiguration, .workspaces_renewed = true},
                                      .workspaces_renewed = true};
// The answer was to renew workspaces.
const RecoveryState kRenewing{.now = {.kind = kConfiguration, .can_shrink = false},
                              .workspaces_renewed = true};

struct RecoveryRow {
  const char* what;
  RecoveryState state;
  RecoveryEvent event;
  RecoveryAction expected;
  std::map<OomKind, int64_t> redos = {};
  bool renewed = false;
};

const RecoveryRow kRecoveryRows[] = {
    {"out of memory", kNothingTried, FaultMet{.kind = kConfiguration}, kShrink},
    {"out of memory in a later step or evaluation", kNothingTried,
     FaultMet{.kind = kLatePeak, .steps_done = true}, kShrink},
    {"again, with the smaller plan", kShrinking, FaultMet{.kind = kLatePeak, .steps_done = true},
     kShrink},
    {"at one row already", kShrinking, NothingDone{}, kRenewWorkspaces, {}, true},
    {"at one row already, with new workspaces", kShrinkingRenewed, NothingDone{}, kEnd, {}, true},
    {"a device without workspaces", kRenewing, NothingDone{}, kEnd, {}, true},
    {"out of memory with new workspaces",
     kRenewed,
     FaultMet{.kind = kConfiguration, .may_shrink = false},
     kEnd,
     {},
     true},
    {"the policy strict",
     kNothingTried,
     FaultMet{.kind = kConfiguration, .may_shrink = false},
     kRenewWorkspaces,
     {},
     true},
    {"fragmentation",
     kNothingTried,
     FaultMet{.kind = kFragmentation},
     kExpandSegments,
     {{kFragmentation, 1}}},
    {"fragmentation again",
     kRedone,
     FaultMet{.kind = kFragmentation},
     kShrink,
     {{kFragmentation, 1}, {kHost, 1}}},
    {"the host's memory", kNothingTried, FaultMet{.kind = kHost}, kRedo, {{kHost, 1}}},
    {"each kind is redone by itself",
     {.redos = {{kHost, 1}}},
     FaultMet{.kind = kFragmentation},
     kExpandSegments,
     {{kFragmentation, 1}, {kHost, 1}}},
    {"others' memory before the first step", kNothingTried, FaultMet{.kind = kDirtyDevice}, kEnd},
    {"others' memory later", kNothingTried, FaultMet{.kind = kDirtyDevice, .steps_done = true},
     kShrink},
    {"others' memory, at one row", kShrinkingOthers, NothingDone{}, kEnd},
    {"something leaked", kNothingTried, FaultMet{.kind = kConfiguration, .clean = false}, kEnd},
    {"something leaked in what may be none", kNothingTried,
     FaultMet{.kind = kConfiguration, .clean = false, .certain = false}, kFail},
    {"what may be none", kNothingTried, FaultMet{.kind = kConfiguration, .certain = false},
     kShrink},
    {"what may be none, and nothing smaller helps", kShrinkingUncertain, NothingDone{}, kFail},
    {"a lost device",
     kRedone,
     FaultMet{.device_lost = true, .clean = false},
     kLoseDevice,
     {{kFragmentation, 1}, {kHost, 1}}},
};

TEST(NextRecovery, FollowsTheTable) {
  for (const RecoveryRow& row : kRecoveryRows) {
    SCOPED_TRACE(row.what);
    RecoveryStep step = NextRecovery(row.state, row.event);
    EXPECT_EQ(step.action, row.expected);
    std::erase_if(step.state.redos, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(step.state.redos, row.redos);
    EXPECT_EQ(step.state.workspaces_renewed, row.renewed);
  }
}

// The host's memory runs out again and again, down to one row.
TEST(NextRecovery, ALadderFromTopToEnd) {
  std::vector<RecoveryAction> actions;
  RecoveryState state;
  RecoveryEvent event = FaultMet{.kind = kFragmentation, .steps_done = true};
  for (int smaller_plans = 2; actions.size() < 10;) {
    RecoveryStep step = NextRecovery(std::move(state), event);
    state = std::move(step.state);
    actions.push_back(step.action);
    if (step.action == kEnd) break;
    event = FaultMet{.kind = kFragmentation, .steps_done = true};
    if (step.action == kShrink && smaller_plans-- <= 0) event = NothingDone{};
  }
  EXPECT_THAT(actions, testing::ElementsAre(kExpandSegments, kShrink, kShrink, kShrink,
                                            kRenewWorkspaces, kShrink, kEnd));
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
