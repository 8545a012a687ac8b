#include "memory/need/memory_replay.h"

#include <algorithm>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "common/models/model_parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/replay_table.h"
#include "memory/need/trial_trace.h"
#include "tests/memory/random_input.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

using testing::ElementsAre;

MemoryEstimate Replayed(const EstimateInput& input, const MemoryPlan& plan) {
  const auto estimate = ReplayMemory(input, plan);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.value_or(MemoryEstimate{});
}

MemoryEstimate Bound(const EstimateInput& input, const MemoryPlan& plan) {
  const auto estimate = EstimateMemory(input, plan);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.value_or(MemoryEstimate{});
}

EstimateInput Input(int64_t hidden, int64_t layers, int64_t tokens, double dropout) {
  EstimateInput input = TinyInput();
  input.model.vocab_size = 4000;
  input.model.hidden_size = hidden;
  input.model.num_layers = layers;
  input.model.num_heads = hidden / 16;
  input.model.intermediate_size = 4 * hidden;
  input.model.max_positions = 512;
  input.config.max_length = tokens;
  input.config.dropout = dropout;
  input.device.threads = 2;
  return input;
}

// Above the truth at any size: the allowance for small tensors, the head's vectors counted as alive
// to the end.
constexpr Bytes kSlack = KiB(72);

TEST(ReplayMemory, IsBelowTheClosedFormWithEveryOptimizer) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kAdamW8bit,
                                   OptimizerKind::kAdafactor, OptimizerKind::kSgd}) {
    EstimateInput input = Input(128, 2, 64, 0.1);
    input.config.optimizer = kind;
    SCOPED_TRACE(std::string(Name(kind)));
    const MemoryEstimate exact = Replayed(input, PlanOf(8, 4));
    const MemoryEstimate bound = Bound(input, PlanOf(8, 4));
    EXPECT_LE(exact.live_peak, bound.live_peak);
    EXPECT_LE(bound.live_peak - exact.live_peak, kSlack + Bytes{exact.live_peak.count / 50});
    EXPECT_LE(exact.optimizer, bound.optimizer + Bytes{64});  // AdamW's step count is elsewhere
    EXPECT_EQ(exact.head, bound.head);
  }
}

TEST(ReplayMemory, IsBelowTheClosedFormAndWithinTwoPercentOfIt) {
  for (const int64_t hidden : {48, 128, 256}) {
    for (const int64_t layers : {1, 2, 6}) {
      for (const int64_t tokens : {16, 128, 400}) {
        for (const double dropout : {0.0, 0.1}) {
          for (const int64_t micro_batch : {1, 4, 8}) {
            const EstimateInput input = Input(hidden, layers, tokens, dropout);
            const MemoryPlan plan = PlanOf(8, micro_batch);
            SCOPED_TRACE(testing::Message()
                         << hidden << " x " << layers << ", " << tokens << " tokens, dropout "
                         << dropout << ", micro-batch " << micro_batch);
            const Bytes exact = Replayed(input, plan).live_peak;
            const Bytes bound = Bound(input, plan).live_peak;
            EXPECT_LE(exact, bound);
            EXPECT_LE(static_cast<double>((bound - kSlack).count),
                      1.02 * static_cast<double>(exact.count));
          }
        }
      }
    }
  }
}

TEST(ReplayMemory, ClassesAddUpToThePeak) {
  EstimateInput input = Input(64, 2, 64, 0.1);
  input.config.head_layers = 1;
  input.config.head_sizes[0] = 100;
  for (const int64_t micro_batch : {2, 8}) {
    const MemoryPlan plan = PlanOf(8, micro_batch);
    const MemoryEstimate exact = Replayed(input, plan);
    EXPECT_EQ(exact.weights + exact.optimizer + exact.gradients + exact.activations + exact.head,
              exact.live_peak);
    EXPECT_EQ(exact.expected_reserved_peak, exact.live_peak);
    EXPECT_EQ(exact.reserved_peak, exact.live_peak);
    EXPECT_EQ(exact.needed_limit, exact.live_peak);
    const MemoryEstimate bound = Bound(input, plan);
    EXPECT_EQ(exact.weights, bound.weights);
    EXPECT_EQ(exact.head, bound.head);
    // And the number of steps, in 64 bytes.
    EXPECT_EQ(exact.optimizer, bound.optimizer + Bytes{64});
  }
}

TEST(ReplayMemory, NamesThePhaseOfThePeak) {
  EstimateInput input = Input(64, 2, 64, 0.1);
  EXPECT_EQ(Replayed(input, PlanOf(8, 8)).peak_phase, "backward");
  input.config.eval_batch_multiplier = 100;
  EXPECT_EQ(Replayed(input, PlanOf(8, 8)).peak_phase, "evaluation");
}

TEST(ReplayMemory, KnowsTheHeadsDropoutAndTheKindOfLabels) {
  EstimateInput input = Input(64, 1, 16, 0.0);
  input.model.vocab_size = 10;
  input.config.head_layers = 1;
  input.config.head_sizes[0] = 20000;
  const MemoryPlan plan = PlanOf(8, 8);
  const Bytes without = Replayed(input, plan).live_peak;
  input.config.head_dropout = 0.5;
  EXPECT_GT(Replayed(input, plan).live_peak, without);
  input.config.head_dropout.reset();
  input.config.head_layers = 0;
  input.workload.num_labels = 20000;
  const Bytes single = Replayed(input, plan).live_peak;
  input.workload.multi_label = true;
  EXPECT_NE(Replayed(input, plan).live_peak, single);
}

TEST(ReplayMemory, CountsTheBuffersOfEachThread) {
  EstimateInput input = Input(64, 1, 256, 0.0);
  input.model.vocab_size = 10;
  input.model.intermediate_size = 16;
  const MemoryPlan plan = PlanOf(1, 1);
  const Bytes two = Replayed(input, plan).live_peak;
  input.device.threads = 3;
  // At least the fused kernel's blocks of attention and its gradient: 64 queries x 256 keys.
  EXPECT_GE(Replayed(input, plan).live_peak - two, Bytes{2 * 4 * 64 * 256});
}

TEST(ReplayMemory, SaysNoToOtherDevicesAndBadSizes) {
  EstimateInput input = Input(64, 1, 64, 0.1);
  EXPECT_EQ(ReplayMemory(input, PlanOf(8, 0)).status().code(), absl::StatusCode::kInvalidArgument);
  input.device.kind = "cuda";
  const MemoryPlan plan = PlanOf(8, 8);
  EXPECT_EQ(ReplayMemory(input, plan, LargestPasses(input, plan)).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(ReplayMemory, SizesBeyondAnyDeviceAreTheBoundsAndDoNotOverflow) {
  EstimateInput input = Input(64, 1, 64, 0.1);
  input.model.hidden_size = 1 << 17;
  input.model.vocab_size = 1 << 24;
  EXPECT_EQ(Replayed(input, PlanOf(8, 8)), Bound(input, PlanOf(8, 8)));
}

TEST(LargestPasses, HaveTheLongestRowInEveryPart) {
  EstimateInput input = Input(64, 1, 128, 0.1);
  input.workload.train_lengths = {{10, 50}, {30, 2}, {70, 3}, {200, 1}};
  input.workload.validation_lengths = {{40, 3}};
  input.config.eval_batch_multiplier = 4;
  const auto parts = [&input](int64_t effective_batch, int64_t micro_batch) {
    const TrialPasses passes = LargestPasses(input, PlanOf(effective_batch, micro_batch));
    EXPECT_EQ(passes.stretches.size(), 1u);
    EXPECT_EQ(passes.stretches.front().steps.size(), 1u);
    return passes.stretches.front().steps.front();
  };
  EXPECT_THAT(parts(8, 8), ElementsAre(BatchShape{8, 128}));
  EXPECT_THAT(parts(8, 1), ElementsAre(BatchShape{1, 128}, BatchShape{1, 128}));
  EXPECT_THAT(parts(8, 6), ElementsAre(BatchShape{6, 128}, BatchShape{2, 128}));
  // No more rows than there are.
  EXPECT_THAT(parts(100, 80), ElementsAre(BatchShape{56, 128}));
  EXPECT_THAT(LargestPasses(input, PlanOf(8, 2)).stretches.front().evaluation,
              ElementsAre(BatchShape{3, 48}));
  // Nothing known: rows enough, all as long as allowed.
  input.workload.validation_lengths.clear();
  EXPECT_THAT(LargestPasses(input, PlanOf(8, 2)).stretches.front().evaluation,
              ElementsAre(BatchShape{8, 128}));
}

TEST(DecidingPasses, KeepsWhatNothingElseExceeds) {
  const TrialPasses all{
      .stretches = {{.steps = {{{4, 32}, {4, 16}, {2, 16}}, {{4, 64}, {4, 16}}},
                     .evaluation = {{8, 32}, {8, 16}}},
                    {.steps = {{{1, 128}}, {{3, 64}, {1, 48}}}, .evaluation = {{2, 16}}}}};
  const TrialPasses deciding = DecidingPasses(all);
  const MeasuredSteps expected{.steps = {{{4, 64}, {4, 16}, {1, 48}}, {{1, 128}}},
                               .evaluation = {{8, 32}}};
  EXPECT_THAT(deciding.stretches, ElementsAre(expected));
  EXPECT_TRUE(DecidingPasses({}).stretches.front().steps.empty());
}

// Leaving passes out does not move the peak.
TEST(DecidingPasses, HaveThePeakOfAll) {
  const EstimateInput input = Input(48, 2, 128, 0.1);
  const KernelTraits traits = TraitsOf(input.device);
  const ClassifierShape shape = ClassifierShapeOf(input, MemoryPlan{});
  for (const int64_t rows : {1, 2, 5}) {
    TrialPasses all;
    for (int64_t step = 0; step < 6; ++step) {
      all.stretches.push_back(
          {.steps = {{{rows, 16 + 16 * ((5 * step) % 7)}, {rows, 16 * ((3 * step) % 5 + 1)}},
                     {{rows + step % 2, 16 * (step + 1)}}},
           .evaluation = {{2 * rows, 16 * (step + 1)}, {rows, 48}}});
    }
    const Bytes unit{traits.granularity};
    EXPECT_EQ(FindLivePeak(TraceTrial(shape, DecidingPasses(all), traits), unit).peak,
              FindLivePeak(TraceTrial(shape, all, traits), unit).peak);
  }
}

TrialPasses OneStep(PackedRows first, PackedRows second, PackedRows evaluated) {
  return {.stretches = {
              {.steps = {{BatchShape::Of(std::move(first)), BatchShape::Of(std::move(second))}},
               .evaluation = {BatchShape::Of(std::move(evaluated))}}}};
}

PackedRows DrawRows(std::mt19937& draw, int64_t rows) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < rows; ++row) {
    lengths.push_back(static_cast<int64_t>(2 + draw() % 60));
  }
  std::sort(lengths.rbegin(), lengths.rend());
  return PackRows(lengths);
}

TEST(DecidingPasses, HaveThePeakOfAllWithoutPadding) {
  std::mt19937 draw(5);
  for (const double dropout : {0.0, 0.1}) {
    const EstimateInput input = Input(48, 2, 64, dropout);
    const KernelTraits traits = TraitsOf(input.device);
    const ClassifierShape shape = ClassifierShapeOf(input, MemoryPlan{});
    TrialPasses all;
    for (int step = 0; step < 12; ++step) {
      const TrialPasses one =
          OneStep(DrawRows(draw, 1 + step % 4), DrawRows(draw, 1 + step % 3), DrawRows(draw, 2));
      all.stretches.push_back(one.stretches.front());
    }
    const TrialPasses deciding = DecidingPasses(all);
    EXPECT_LT(deciding.stretches.front().steps.size(), all.stretches.size());
    const Bytes unit{traits.granularity};
    EXPECT_EQ(FindLivePeak(TraceTrial(shape, deciding, traits), unit).peak,
              FindLivePeak(TraceTrial(shape, all, traits), unit).peak);
  }
}

// Whatever rows meet in a batch, the histogram's longest need the most, but for what rounding up
// makes of their groups.
TEST(ReplayMemory, WithoutPaddingIsThatOfTheLongestRows) {
  constexpr Bytes kRounding{4096};
  std::mt19937 draw(6);
  for (const double dropout : {0.0, 0.1}) {
    EstimateInput input = Input(64, 2, 64, dropout);
    std::vector<int64_t> lengths;
    for (const RowGroup& group : DrawRows(draw, 40)) {
      input.workload.train_lengths[group.tokens] += group.rows;
      lengths.insert(lengths.end(), static_cast<size_t>(group.rows), group.tokens);
    }
    input.workload.validation_lengths = {{20, 4}};
    const Bytes padded = Replayed(input, PlanOf(8, 4)).live_peak;
    input.config.unpadded = true;
    const Bytes largest = Replayed(input, PlanOf(8, 4)).live_peak;
    EXPECT_GE(Bound(input, PlanOf(8, 4)).live_peak, largest);
    EXPECT_LE(Bound(input, PlanOf(8, 4)).live_peak, largest + kSlack);
    EXPECT_LT(largest, padded);
    for (int i = 0; i < 20; ++i) {
      std::shuffle(lengths.begin(), lengths.end(), draw);
      std::sort(lengths.begin(), lengths.begin() + 8, std::greater<>());
      const std::span<const int64_t> batch(lengths.data(), 8);
      const TrialPasses passes =
          OneStep(PackRows(batch.first(4)), PackRows(batch.subspan(4)), {{4, 20}});
      const auto drawn = ReplayMemory(input, PlanOf(8, 4), passes);
      ASSERT_TRUE(drawn.ok()) << drawn.status();
      EXPECT_LE(drawn->live_peak, largest + kRounding);
    }
  }
}

TEST(TraceTrial, LeavesWeightsAndStates) {
  const EstimateInput input = Input(48, 2, 64, 0.1);
  const AllocationTrace trace =
      TraceTrial(ClassifierShapeOf(input, PlanOf(8, 3)), LargestPasses(input, PlanOf(8, 3)),
                 TraitsOf(input.device));
  std::vector<int64_t> live(static_cast<size_t>(trace.num_blocks), 0);
  for (const TraceEvent& event : trace.events) {
    int64_t& bytes = live[static_cast<size_t>(event.block)];
    ASSERT_EQ(bytes, event.allocates ? 0 : event.bytes);
    bytes = event.allocates ? event.bytes : 0;
  }
  int64_t left = 0;
  for (const int64_t bytes : live) left += bytes;
  const int64_t head = 48 * 2 + 2;
  EXPECT_EQ(left, 3 * 4 * (*NumParameters(input.model) + head) + 4);
}

// Whatever the limit, decisions on a card are the replay's: no formula stands in for it.
TEST(EstimateWithin, DecidesAsTheReplayDoes) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [input, plan] = DrawTrial(seed);
    const MemoryEstimate exact = *ReplayMemory(input, plan);
    const NeedRange range = NeedRangeOf(*EstimateMemory(input, plan));
    const Bytes need = exact.needed_limit;
    ReplayTable table;
    for (const Bytes limit : {need - Bytes{1}, Bytes{}, exact.live_peak, range.least, need,
                              exact.reserved_peak + exact.base, range.most, need + GiB(1)}) {
      const MemoryEstimate within = *EstimateWithin(input, plan, limit);
      EXPECT_EQ(within.needed_limit <= limit, need <= limit);
      if (need <= limit) {
        EXPECT_EQ(within, exact);
      }
      EXPECT_LE(within.needed_limit, need);
      EXPECT_EQ(within.live_peak, exact.live_peak);
      EXPECT_EQ(*EstimateWithin(input, plan, limit, &table), within);
    }
  }
}

TEST(LimitedTo, IsTheEstimateOrItsTensorsAboveTheLimit) {
  const EstimateInput input = DrawTrial(1).input;
  const MemoryEstimate exact = *ReplayMemory(input, DrawTrial(1).plan);
  EXPECT_EQ(LimitedTo(exact, exact.needed_limit), exact);
  const MemoryEstimate above = LimitedTo(exact, exact.needed_limit - Bytes{1});
  EXPECT_EQ(above.needed_limit, exact.needed_limit);
  EXPECT_EQ(above.reserved_peak, exact.live_peak);
  EXPECT_EQ(LimitedTo(above, Bytes{}).needed_limit, exact.live_peak + exact.base);
}

TEST(EstimateWithin, OnACpuTheClosedFormAdmitsAndTheReplayRefuses) {
  const EstimateInput input = Input(128, 2, 128, 0.1);
  const MemoryPlan plan = PlanOf(8, 8);
  const Bytes exact = Replayed(input, plan).needed_limit;
  const Bytes bound = Bound(input, plan).needed_limit;
  ASSERT_LT(exact, bound);
  const auto within = [&](Bytes limit) { return EstimateWithin(input, plan, limit)->needed_limit; };
  EXPECT_EQ(within(bound), bound);
  EXPECT_EQ(within(bound - Bytes{1}), exact);
  EXPECT_EQ(within(exact), exact);
  EXPECT_EQ(within(exact - Bytes{1}), exact);
  EXPECT_EQ(within(Bytes{exact.count / 2}), exact);
  EXPECT_EQ(within(Bytes{}), exact);
}

}  // namespace
}  // namespace hpo::memory
