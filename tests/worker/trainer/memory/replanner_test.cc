#include "worker/trainer/memory/replanner.h"

#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "memory/need/ordered_replay.h"

namespace hpo::trainer {
namespace {

memory::EstimateInput Input() {
  memory::EstimateInput input;
  input.model = {.family = "bert",
                 .vocab_size = 1000,
                 .hidden_size = 64,
                 .num_layers = 2,
                 .num_heads = 4,
                 .intermediate_size = 256,
                 .max_positions = 128,
                 .type_vocab_size = 2,
                 .hidden_dropout = 0.1,
                 .attention_dropout = 0.1};
  input.config.batch_size = 64;
  input.config.max_length = 64;
  input.workload.num_labels = 3;
  input.device.kind = "cpu";
  return input;
}

MemoryPlan Plan(int64_t micro_batch) { return {.effective_batch = 64, .micro_batch = micro_batch}; }

// What a plan needs.
Bytes Need(int64_t micro_batch) {
  const auto estimate = memory::ReplayMemory(Input(), Plan(micro_batch));
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate->needed_limit;
}

constexpr Bytes kBaseline = KiB(3);

TEST(Replanner, PredictsWithTheBaseline) {
  const Replanner replanner(Input(), kBaseline, Bytes{}, /*may_checkpoint=*/false);
  EXPECT_EQ(replanner.PredictedPeak(Plan(8)), Need(8) + kBaseline);
  EXPECT_EQ(replanner.PredictedReservedPeak(Plan(8), {}), Need(8) + kBaseline);
  EXPECT_FALSE(replanner.PredictedPeak(Plan(0)).has_value());
  EXPECT_FALSE(replanner.PredictedReservedPeak(Plan(0), {}).has_value());
}

TEST(Replanner, JumpsToTheLargestThatFits) {
  Replanner replanner(Input(), kBaseline, Need(11) + kBaseline, /*may_checkpoint=*/false);
  EXPECT_FALSE(replanner.Fits(Plan(12)));
  EXPECT_TRUE(replanner.Fits(Plan(11)));
  EXPECT_EQ(replanner.Smaller(Plan(64)), Plan(11));
}

// As admission: whatever a formula says between the need and itself.
TEST(Replanner, OnACardReplaysDecide) {
  memory::EstimateInput card = Input();
  card.device.kind = "cuda";
  card.device.workspace = MiB(16);
  const auto replayed = [&card](int64_t micro_batch) {
    return memory::ReplayMemory(card, Plan(micro_batch)).value();
  };
  const Bytes limit = replayed(20).needed_limit;
  ASSERT_GT(memory::EstimateMemory(card, Plan(20))->needed_limit, limit);
  Replanner replanner(card, MiB(17), limit, /*may_checkpoint=*/false);
  EXPECT_EQ(replanner.PredictedPeak(Plan(20)), replayed(20).expected_live_peak + MiB(17));
  const memory::TrialPasses passes = memory::LargestPasses(card, Plan(20));
  EXPECT_EQ(replanner.PredictedReservedPeak(Plan(20), passes),
            *memory::ReplayReservedPeak(card, Plan(20), passes));
  EXPECT_TRUE(replanner.Fits(Plan(20)));
  const auto chosen = replanner.Smaller(Plan(64));
  ASSERT_TRUE(chosen.has_value());
  EXPECT_LE(replayed(chosen->micro_batch).needed_limit, limit);
  EXPECT_GT(replayed(chosen->micro_batch + 1).needed_limit, limit);
}

TEST(Replanner, TheBaselineIsPartOfTheLimit) {
  Replanner replanner(Input(), MiB(1), Need(11) + MiB(1) - Bytes{1}, /*may_checkpoint=*/false);
  EXPECT_EQ(replanner.Smaller(Plan(64)), Plan(10));
}

TEST(Replanner, WhatWasSeenCorrectsEveryPlan) {
  Replanner replanner(Input(), Bytes{}, Need(32), /*may_checkpoint=*/false);
  EXPECT_TRUE(replanner.Fits(Plan(32)));
  // A probe under 16 rows needed as much as 24 were to need.
  const Bytes seen = Need(24);
  EXPECT_TRUE(replanner.Correct(Plan(16), seen));
  EXPECT_EQ(replanner.correction(), seen - Need(16));
  EXPECT_EQ(replanner.PredictedPeak(Plan(16)), Need(16)) << "the prediction itself stays";
  EXPECT_FALSE(replanner.Fits(Plan(32)));
  const auto chosen = replanner.Smaller(Plan(32));
  ASSERT_TRUE(chosen.has_value());
  EXPECT_LE(Need(chosen->micro_batch) + replanner.correction(), Need(32));
  EXPECT_GT(Need(chosen->micro_batch + 1) + replanner.correction(), Need(32));
  EXPECT_FALSE(replanner.Correct(Plan(16), Need(12))) << "less than seen before";
  EXPECT_EQ(replanner.correction(), seen - Need(16));
}

TEST(Replanner, ToleratesOnePercent) {
  Replanner replanner(Input(), Bytes{}, Bytes{}, /*may_checkpoint=*/false);
  const Bytes need = Need(32);
  ASSERT_GT(need.count / 100, Replanner::kSmallTolerance.count);
  EXPECT_FALSE(replanner.Correct(Plan(32), need + Bytes{need.count / 100 - 1}));
  EXPECT_TRUE(replanner.Correct(Plan(32), need + Bytes{need.count / 100 + 2}));
}

TEST(Replanner, HalvesWhereTheEstimateHasNothingToSay) {
  Replanner no_limit(Input(), Bytes{}, Bytes{}, /*may_checkpoint=*/false);
  EXPECT_EQ(no_limit.Smaller(Plan(9)), Plan(4));
  Replanner nothing_fits(Input(), Bytes{}, Need(1) - Bytes{1}, /*may_checkpoint=*/false);
  EXPECT_EQ(nothing_fits.Smaller(Plan(9)), Plan(4));
  // By the estimate it had to run, so the estimate is of no use.
  Replanner should_fit(Input(), Bytes{}, Need(40), /*may_checkpoint=*/false);
  EXPECT_EQ(should_fit.Smaller(Plan(32)), Plan(16));
  EXPECT_FALSE(should_fit.Smaller(Plan(1)).has_value());
}

TEST(Replanner, AChoiceThatFailedIsAtLeastHalved) {
  Replanner replanner(Input(), Bytes{}, Need(20), /*may_checkpoint=*/false);
  EXPECT_EQ(replanner.Smaller(Plan(64)), Plan(20));
  replanner.Correct(Plan(20), Need(20) + Bytes{64});  // refused by one block
  EXPECT_EQ(replanner.Smaller(Plan(20)), Plan(10));
}

MemoryPlan Recomputing(int64_t micro_batch) {
  MemoryPlan plan = Plan(micro_batch);
  plan.checkpointing = true;
  return plan;
}

TEST(Replanner, AtOneRowLayersAreComputedAgainWhereTheyMayBe) {
  for (const Bytes limit : {Bytes{}, Need(1) - Bytes{1}, Need(40)}) {
    SCOPED_TRACE(limit.count);
    Replanner may(Input(), Bytes{}, limit, /*may_checkpoint=*/true);
    EXPECT_EQ(may.Smaller(Plan(1)), Recomputing(1));
    EXPECT_FALSE(may.Smaller(Recomputing(1)).has_value()) << "the end of the ladder";
    Replanner may_not(Input(), Bytes{}, limit, /*may_checkpoint=*/false);
    EXPECT_FALSE(may_not.Smaller(Plan(1)).has_value());
  }
}

// With enough layers, all of one batch computed again needs less than one row of it kept.
TEST(Replanner, WhereNoMicroBatchFitsTheLargestThatFitsComputedAgainIsTaken) {
  memory::EstimateInput deep = Input();
  deep.model.num_layers = 24;
  const auto need = [&](const MemoryPlan& plan) {
    return memory::ReplayMemory(deep, plan).value().needed_limit;
  };
  ASSERT_LT(need(Recomputing(3)), need(Plan(1)));
  ASSERT_GT(need(Recomputing(4)), need(Recomputing(3)));
  Replanner replanner(deep, Bytes{}, need(Recomputing(3)), /*may_checkpoint=*/true);
  EXPECT_EQ(replanner.Smaller(Plan(64)), Recomputing(3));
  EXPECT_EQ(replanner.Smaller(Plan(2)), Recomputing(2)) << "no more rows than did not fit";
  replanner.Correct(Recomputing(3), need(Recomputing(3)) + Bytes{64});  // refused by one block
  EXPECT_EQ(replanner.Smaller(Recomputing(3)), Recomputing(1)) << "at least halved";
  Replanner roomy(deep, Bytes{}, need(Plan(5)), /*may_checkpoint=*/true);
  EXPECT_EQ(roomy.Smaller(Plan(64)), Plan(5)) << "fewer rows come before a second forward";
}

}  // namespace
}  // namespace hpo::trainer
