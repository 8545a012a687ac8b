#include "common/memory/cached_replay.h"

#include "common/memory/memory_replay.h"
#include "gtest/gtest.h"
#include "tests/common/memory/tiny_input.h"

namespace hpo {
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
      EXPECT_GE(replay.reserved_peak, replay.live_peak + input.device.workspace);
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
  const CachedReplay replay(input, plan, ClassifierShapeOf(input), TraitsOf(input.device));
  const CachedBytes need = replay.Need();
  EXPECT_TRUE(replay.FitsWithin(need.needed_limit));
  EXPECT_TRUE(replay.FitsWithin(need.reserved_peak));
  EXPECT_FALSE(replay.FitsWithin(Bytes{need.needed_limit.count / 100 * 98}));
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

}  // namespace
}  // namespace hpo
