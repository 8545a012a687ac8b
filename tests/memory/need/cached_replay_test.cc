#include "memory/need/cached_replay.h"

#include <vector>

#include "common/base/status.h"
#include "gtest/gtest.h"
#include "memory/allocator/allocator_settings.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/memory_replay.h"
#include "tests/memory/tiny_input.h"
#include "tests/memory/varying_trial.h"

namespace hpo::memory {
namespace {

EstimateInput GpuInput(int64_t batch_size, int64_t grad_accum = 1) {
  EstimateInput input = BertBaseInput();
  input.model.num_layers = 4;
  input.config.batch_size = batch_size;
  input.config.grad_accum = grad_accum;
  input.device.kind = "cuda";
  input.device.workspace = MiB(64);
  input.device.base = MiB(640);
  return input;
}

TEST(CachedReplay, IsBetweenTheTensorsAndTheBound) {
  for (const int64_t batch_size : {1, 8, 32}) {
    for (const int64_t grad_accum : {1, 4}) {
      const EstimateInput input = GpuInput(batch_size, grad_accum);
      const MemoryPlan plan = PlanOf(batch_size * grad_accum, batch_size);
      const MemoryEstimate bound = *EstimateMemory(input, plan);
      const MemoryEstimate replay = *ReplayMemory(input, plan);
      EXPECT_LE(replay.live_peak, bound.live_peak);
      EXPECT_GE(replay.live_peak.count * 102, bound.live_peak.count * 100);
      EXPECT_GE(replay.expected_reserved_peak, replay.live_peak + input.device.workspace);
      EXPECT_GE(replay.reserved_peak, replay.expected_reserved_peak);
      EXPECT_GE(replay.needed_limit, replay.live_peak + replay.workspaces + replay.base);
      EXPECT_LE(replay.needed_limit, bound.needed_limit);
      EXPECT_EQ(
          replay.weights + replay.gradients + replay.optimizer + replay.activations + replay.head,
          replay.live_peak);
    }
  }
}

TEST(CachedReplay, FitsFromTheNeededLimitOn) {
  const EstimateInput input = GpuInput(8, 2);
  const MemoryPlan plan = PlanOf(16, 8);
  const CachedReplay replay(input, plan, ClassifierShapeOf(input, plan), TraitsOf(input.device));
  const CachedBytes need = *replay.NeedWithin(Bytes{AllocatorOptions::kUnlimited});
  EXPECT_TRUE(replay.FitsWithin(need.needed_limit));
  EXPECT_TRUE(replay.FitsWithin(need.reserved_peak));
  EXPECT_FALSE(replay.FitsWithin(Bytes{need.needed_limit.count / 100 * 98}));
}

// Segments that grow leave less between them; requests that are rounded up take more.
TEST(CachedReplay, IsOfTheDevicesAllocator) {
  const auto reserved = [](const char* allocator) {
    EstimateInput input = GpuInput(8, 2);
    input.device.allocator = allocator;
    return ReplayMemory(input, PlanOf(16, 8))->reserved_peak;
  };
  const Bytes usual = reserved("");
  EXPECT_EQ(reserved("expandable_segments:False"), usual);
  EXPECT_EQ(reserved("counting"), usual);
  EXPECT_LT(reserved("expandable_segments:True"), usual);
  EXPECT_GT(reserved("roundup_power2_divisions:2"), usual);
}

// Whatever limit is asked for, the answer is the same need, or that this one is no good.
TEST(CachedReplay, NeedsTheSameWithinAnyLimit) {
  const EstimateInput input = GpuInput(8, 2);
  const MemoryPlan plan = PlanOf(16, 8);
  const CachedReplay replay(input, plan, ClassifierShapeOf(input, plan), TraitsOf(input.device));
  const CachedBytes need = *replay.NeedWithin(Bytes{AllocatorOptions::kUnlimited});
  for (int64_t percent = 80; percent <= 120; percent += 2) {
    const Bytes limit{need.needed_limit.count / 100 * percent};
    const std::optional<CachedBytes> within = replay.NeedWithin(limit);
    EXPECT_EQ(within.has_value(), need.needed_limit <= limit && replay.FitsWithin(limit));
    EXPECT_EQ(within.value_or(need), need);
  }
}

// A model whose orders differ: among 400 random ones, 2 % do.
TEST(CachedReplay, IsFragileWhereTheOrdersNeedsAreApart) {
  int64_t num_fragile = 0;
  for (int64_t hidden_size : {64, 128, 256, 512}) {
    for (int64_t tokens = 16; tokens <= 256; tokens += 16) {
      EstimateInput input = GpuInput(16);
      input.model.num_layers = 2;
      input.model.vocab_size = 1000;
      input.model.hidden_size = hidden_size;
      input.model.num_heads = 4;
      input.model.intermediate_size = 4 * hidden_size;
      input.config.max_length = tokens;
      num_fragile += ReplayMemory(input, PlanOf(16, 16))->fragile ? 1 : 0;
    }
  }
  EXPECT_GT(num_fragile, 0);
  EXPECT_LT(num_fragile, 20);
}

TEST(CachedReplay, ShorterRowsBetweenTheLongestMayOnlyAdd) {
  EstimateInput input = GpuInput(16);
  const MemoryPlan plan = PlanOf(16, 16);
  const Bytes alike = ReplayMemory(input, plan)->needed_limit;
  input.workload.train_lengths = {{40, 900}, {128, 90}, {512, 10}};
  input.workload.validation_lengths = {{512, 10}};
  const MemoryEstimate mixed = *ReplayMemory(input, plan);
  EXPECT_GE(mixed.needed_limit, alike - MiB(64));
  // The longest row decides, not the median.
  input.workload.train_lengths = {{40, 900}};
  EXPECT_LT(ReplayMemory(input, plan)->live_peak, mixed.live_peak);
}

// Whether the trial runs within `limit` in the order of `passes`.
bool RunsWithin(const RandomTrial& trial, const TrialPasses& passes, Bytes limit) {
  const EstimateInput& input = trial.input;
  const KernelTraits traits = TraitsOf(input.device);
  AllocatorModel allocator(*ParseAllocatorSettings(input.device.allocator));
  const auto play = [&allocator](const AllocationTrace& trace) {
    std::vector<AllocatorModel::Block> blocks(static_cast<size_t>(trace.num_blocks));
    for (const TraceEvent& event : trace.events) {
      AllocatorModel::Block& block = blocks[static_cast<size_t>(event.block)];
      if (!event.allocates) {
        allocator.Free(block);
        continue;
      }
      const auto allocated = allocator.Allocate(Bytes{event.bytes}, event.stream);
      if (!allocated.has_value()) return false;
      block = *allocated;
    }
    return true;
  };
  HPO_CHECK(play(TraceWarmUp(traits)));
  allocator.EmptyCache();
  allocator.SetLimit(limit);
  return play(TraceTrial(ClassifierShapeOf(input, trial.plan), passes, traits));
}

// Batches of varying length, rows shuffled: admission leaves 3 % above the need. Before steps were
// drawn 11 of these ran out there. Seeds that the number of steps was not chosen by.
TEST(CachedReplay, BoundsTheOrdersThatBatchesOfVaryingLengthTake) {
  constexpr int kTrials = 100;
  int ran_out = 0;
  for (uint64_t seed = 10'000; seed < 10'000 + kTrials; ++seed) {
    const VaryingTrial drawn = DrawVaryingTrial(seed, 20);
    const EstimateInput& input = drawn.trial.input;
    const Bytes need = ReplayMemory(input, drawn.trial.plan)->needed_limit - input.device.base;
    const Bytes limit{need.count / 100 * 103};
    ran_out += RunsWithin(drawn.trial, ShuffledPasses(drawn, seed), limit) ? 0 : 1;
  }
  EXPECT_LE(ran_out, 4);
}

}  // namespace
}  // namespace hpo::memory
