#include "memory/need/ordered_replay.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/memory_replay.h"
#include "memory/need/stretch_player.h"
#include "memory/need/trial_trace.h"
#include "tests/memory/tiny_input.h"
#include "tests/memory/varying_trial.h"

namespace hpo::memory {
namespace {

// Every pass played, whatever has been played before it.
Bytes ReservedOverAll(const RandomTrial& trial, const TrialPasses& passes) {
  const KernelTraits traits = TraitsOf(trial.input.device);
  const AllocationTrace trace =
      TraceTrial(ClassifierShapeOf(trial.input, trial.plan), passes, traits);
  StretchPlayer player(trial.input.device, traits, trace.num_blocks);
  EXPECT_TRUE(player.Play(trace.events));
  return player.stats().reserved_peak;
}

// Three epochs, rows shuffled before each.
TrialPasses ThreeEpochs(const VaryingTrial& varying, uint64_t seed) {
  TrialPasses passes = ShuffledPasses(varying, seed);
  for (const uint64_t epoch : {1, 2}) {
    passes.stretches.push_back(ShuffledPasses(varying, seed + epoch).stretches.back());
  }
  return passes;
}

TEST(ReplayReservedPeak, IsThatOfAllPassesInTheirOrder) {
  int orders_that_differ = 0;
  for (uint64_t seed = 300; seed < 360; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const VaryingTrial varying = DrawVaryingTrial(seed, 8);
    const RandomTrial& trial = varying.trial;
    const TrialPasses passes = ThreeEpochs(varying, seed);
    const auto replayed = ReplayReservedPeak(trial.input, trial.plan, passes);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(*replayed, ReservedOverAll(trial, passes));
    const auto shuffled = ReplayReservedPeak(trial.input, trial.plan, ThreeEpochs(varying, 0));
    orders_that_differ += *replayed == *shuffled ? 0 : 1;
  }
  EXPECT_GT(orders_that_differ, 0);
}

TEST(ReplayReservedPeak, TheCacheIsGivenBackAsTheTrialDoes) {
  int that_differ = 0;
  for (uint64_t seed = 400; seed < 420; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    VaryingTrial varying = DrawVaryingTrial(seed, 8);
    RandomTrial& trial = varying.trial;
    const TrialPasses passes = ShuffledPasses(varying, seed);
    const Bytes kept = *ReplayReservedPeak(trial.input, trial.plan, passes);
    const KernelTraits traits = TraitsOf(trial.input.device);
    const AllocationTrace trace =
        TraceTrial(ClassifierShapeOf(trial.input, trial.plan), passes, traits);
    StretchPlayer player(trial.input.device, traits, trace.num_blocks);
    // Loading, the probe's step and its evaluation.
    int64_t left_of_warm_up = 3;
    int64_t steps = std::ssize(passes.stretches.back().steps);
    for (const Stretch stretch : CutIntoStretches(trace)) {
      player.Play(stretch);
      if (left_of_warm_up-- > 0) continue;
      if (steps-- > 0 && steps % 2 == std::ssize(passes.stretches.back().steps) % 2) {
        player.EmptyCache();
      }
    }
    trial.input.config.clear_cache_every = 2;
    EXPECT_EQ(*ReplayReservedPeak(trial.input, trial.plan, passes), player.stats().reserved_peak);
    that_differ += kept == player.stats().reserved_peak ? 0 : 1;
  }
  EXPECT_GT(that_differ, 2);
}

TEST(ReplayReservedPeak, OfTooManyPassesItTakesTheFirst) {
  const VaryingTrial varying = DrawVaryingTrial(7, 4);
  const RandomTrial& trial = varying.trial;
  TrialPasses passes = ShuffledPasses(varying, 7);
  const Bytes first = *ReplayReservedPeak(trial.input, trial.plan, passes);
  MeasuredSteps& last = passes.stretches.back();
  for (int64_t i = 0; i < 2 * kMostDifferentPasses; ++i) last.evaluation.push_back({.rows = 1 + i});
  EXPECT_GE(*ReplayReservedPeak(trial.input, trial.plan, passes), first);
  last.steps.push_back({{.rows = 1000, .tokens = 16}});
  EXPECT_GT(*ReplayReservedPeak(trial.input, trial.plan, passes), first);
}

TEST(ReplayReservedPeak, IsOfACardAlone) {
  EstimateInput input = BertBaseInput();
  const MemoryPlan plan = PlanOf(4, 4);
  EXPECT_EQ(ReplayReservedPeak(input, plan, LargestPasses(input, plan)).status(),
            absl::UnimplementedError("replay of passes in their order: expected a model of our "
                                     "trainer on a card, got bert on cpu"));
  input.device.kind = "cuda";
  EXPECT_TRUE(ReplayReservedPeak(input, plan, LargestPasses(input, plan)).ok());
  EXPECT_EQ(ReplayReservedPeak(input, PlanOf(4, 0), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo::memory
