#include "worker/trainer/training/effective_batch.h"

#include <set>

#include "gtest/gtest.h"
#include "memory/plan/memory_plan.h"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/tiny_model.h"
#include "worker/trainer/memory/oom_guard.h"

namespace hpo::trainer {
namespace {

using EffectiveBatchTest = TinyModelTest;

TEST_F(EffectiveBatchTest, AfterAHalvingGradientsEqualAnUndisturbedRunBitForBit) {
  const MemoryPlan whole{.effective_batch = 16, .micro_batch = 16};
  const MemoryPlan half{.effective_batch = 16, .micro_batch = 8};
  const Bytes before = memory_.Read().live;
  memory_.ResetPeak();
  Compute(whole);
  const Bytes whole_needs = memory_.Read().peak - before;
  Clear();
  const double undisturbed_loss = Compute(half, 7);
  const Gradients undisturbed = TakeGradients();

  const Bytes baseline = memory_.Read().live;
  for (int eighths = 1; eighths < 8; ++eighths) {
    SCOPED_TRACE(eighths);
    // Runs out of memory at a different place of forward or backward each time.
    memory_.SetLimit(baseline + Bytes{whole_needs.count * eighths / 8});
    const BatchAttempt attempt = TryBatch(
        memory_, baseline, [&] { Compute(whole, 7); }, [&] { Clear(); });
    memory_.SetLimit(Bytes{});
    ASSERT_TRUE(attempt.fault.has_value());
    EXPECT_TRUE(attempt.clean);
    const std::optional<MemoryPlan> smaller = memory::SmallerPlan(whole);
    ASSERT_EQ(smaller, half);
    EXPECT_EQ(Compute(*smaller, 7), undisturbed_loss);
    ExpectBitwiseEqual(TakeGradients(), undisturbed);
    EXPECT_EQ(memory_.Read().live, baseline);
  }
}

TEST_F(EffectiveBatchTest, DropoutDependsOnTheStepAndOnNothingBefore) {
  const MemoryPlan plan{.effective_batch = 16, .micro_batch = 4};
  Compute(plan, 1);
  const Gradients first = TakeGradients();
  Compute(plan, 2);
  const Gradients other = TakeGradients();
  EXPECT_FALSE(at::equal(first.front(), other.front()));
  Compute(plan, 1);
  ExpectBitwiseEqual(TakeGradients(), first);
}

TEST_F(EffectiveBatchTest, TheSplitOnlyRounds) {
  model_->eval();  // no dropout: only the order of sums differs
  // Parts are padded to their own longest row, so the split changes the padding too.
  std::set<int64_t> lengths;
  for (const int64_t row : rows_) lengths.insert(text::PaddedLength(data_.train, {&row, 1}, 64));
  ASSERT_GT(lengths.size(), 1u);
  const double loss = Compute({.effective_batch = 16, .micro_batch = 16});
  const Gradients whole = TakeGradients();
  for (const int64_t micro_batch : {1, 3, 5, 15}) {
    SCOPED_TRACE(micro_batch);
    EXPECT_NEAR(Compute({.effective_batch = 16, .micro_batch = micro_batch}), loss, 1e-6);
    const Gradients split = TakeGradients();
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_LE(LargestDifference(split[i], whole[i]), 1e-6) << i;
    }
  }
}

}  // namespace
}  // namespace hpo::trainer
