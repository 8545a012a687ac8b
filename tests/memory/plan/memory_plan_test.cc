#include "memory/plan/memory_plan.h"

#include <numeric>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "memory/need/replay_table.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

EstimateInput Configured(int64_t batch_size, int64_t grad_accum) {
  EstimateInput input = TinyInput();
  input.config.batch_size = batch_size;
  input.config.grad_accum = grad_accum;
  return input;
}

Bytes NeededAt(const EstimateInput& input, int64_t micro_batch) {
  const auto estimate = ReplayMemory(input, PlanOf(input.config.EffectiveBatch(), micro_batch));
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.value_or(MemoryEstimate{}).needed_limit;
}

PlannedMemory PlanFor(const EstimateInput& input, MemoryPolicy policy, Bytes limit) {
  MemorySpec memory;
  memory.policy = policy;
  const auto planned = PlanMemory(input, memory, limit);
  EXPECT_TRUE(planned.ok()) << planned.status();
  return planned.value_or(PlannedMemory{});
}

TEST(PlanMemory, TakesTheWholeBatchWhereItFits) {
  const EstimateInput input = Configured(8, 4);
  const PlannedMemory planned = PlanFor(input, MemoryPolicy::kPlan, GiB(1));
  EXPECT_TRUE(planned.fits);
  EXPECT_EQ(planned.plan, PlanOf(32, 8));
  EXPECT_EQ(planned.plan.NumParts(), 4);
}

// At every limit, the plan's micro-batch is the largest that fits, exactly to the byte.
TEST(PlanMemory, FindsTheLargestMicroBatchThatFits) {
  for (const int64_t batch_size : {1, 2, 3, 7, 16, 33}) {
    for (const int64_t grad_accum : {1, 3}) {
      const EstimateInput input = Configured(batch_size, grad_accum);
      for (int64_t m = 1; m < batch_size; ++m) {
        SCOPED_TRACE(::testing::Message() << batch_size << " x " << grad_accum << ", m " << m);
        const Bytes needed = NeededAt(input, m);
        // A batch in one part may need less than its halves: later parts meet the gradients.
        if (NeededAt(input, batch_size) <= needed) continue;
        const PlannedMemory exact = PlanFor(input, MemoryPolicy::kPlan, needed);
        EXPECT_EQ(exact.plan, PlanOf(batch_size * grad_accum, m));
        EXPECT_TRUE(exact.fits);
        EXPECT_EQ(exact.estimate.needed_limit, needed);
        const PlannedMemory less = PlanFor(input, MemoryPolicy::kPlan, needed - Bytes{1});
        EXPECT_EQ(less.fits, m > 1);
        EXPECT_EQ(less.plan.micro_batch, std::max<int64_t>(1, m - 1));
      }
    }
  }
}

// On a card: the last of those that fit, by a replay of each.
TEST(PlanMemory, FindsTheLargestMicroBatchOnACard) {
  EstimateInput input = BertBaseInput();
  input.model.num_layers = 2;
  input.config.batch_size = 40;
  input.config.grad_accum = 2;
  input.device.kind = "cuda";
  input.device.base = MiB(640);
  std::vector<Bytes> needs = {Bytes{}};
  for (int64_t m = 1; m <= 40; ++m) needs.push_back(NeededAt(input, m));
  ReplayTable replays;
  for (int64_t limit = 1000; limit < 4000; limit += 125) {
    SCOPED_TRACE(::testing::Message() << limit << " MiB");
    const PlannedMemory planned = *PlanMemory(input, MemorySpec{}, MiB(limit));
    const auto chosen = static_cast<size_t>(planned.plan.micro_batch);
    EXPECT_EQ(planned.fits, needs[chosen] <= MiB(limit));
    EXPECT_EQ(planned.fits, needs[1] <= MiB(limit));
    if (planned.fits && chosen < 40) {
      EXPECT_GT(needs[chosen + 1], MiB(limit));
    }
    EXPECT_EQ(*PlanMemory(input, MemorySpec{}, MiB(limit), &replays), planned);
  }
}

TEST(PlanMemory, SaysSoWhereNotEvenOneRowFits) {
  const EstimateInput input = Configured(8, 2);
  const PlannedMemory planned = PlanFor(input, MemoryPolicy::kPlan, KiB(1));
  EXPECT_FALSE(planned.fits);
  EXPECT_EQ(planned.plan, PlanOf(16, 1));
  EXPECT_GE(planned.estimate.needed_limit, NeededAt(input, 1));
}

// The one case where the need is not monotone in m: the whole batch as one part.
TEST(PlanMemory, PrefersOnePartToSmallerOnesThatNeedMore) {
  EstimateInput input = BertBaseInput();
  input.config.batch_size = 2;
  input.config.max_length = 16;
  const Bytes whole = NeededAt(input, 2);
  ASSERT_LT(whole, NeededAt(input, 1));
  const PlannedMemory planned = PlanFor(input, MemoryPolicy::kPlan, whole);
  EXPECT_TRUE(planned.fits);
  EXPECT_EQ(planned.plan.micro_batch, 2);
}

TEST(PlanMemory, StrictKeepsTheBatchSize) {
  const EstimateInput input = Configured(8, 2);
  const Bytes needed = NeededAt(input, 8);
  const PlannedMemory fits = PlanFor(input, MemoryPolicy::kStrict, needed);
  EXPECT_EQ(fits.plan, PlanOf(16, 8));
  EXPECT_TRUE(fits.fits);
  const PlannedMemory misfit = PlanFor(input, MemoryPolicy::kStrict, needed - Bytes{1});
  EXPECT_EQ(misfit.plan, PlanOf(16, 8));
  EXPECT_FALSE(misfit.fits);
}

TEST(PlanMemory, OffAdmitsEverything) {
  const PlannedMemory planned = PlanFor(Configured(8, 2), MemoryPolicy::kOff, Bytes{});
  EXPECT_EQ(planned.plan, PlanOf(16, 8));
  EXPECT_TRUE(planned.fits);
  EXPECT_GT(planned.estimate.needed_limit, Bytes{});
}

// bert-base in parts of one row of 512 tokens: every rung needs less than the one before.
TEST(PlanMemory, ClimbsDownTheLadderAsFarAsTheStudyAllows) {
  EstimateInput input = BertBaseInput();
  input.config.dropout = 0.1;  // attention is written out: layers keep more than gradients take
  MemoryPlan rung = PlanOf(16, 1);
  const Bytes plain = ReplayMemory(input, rung)->needed_limit;
  rung.checkpointing = true;
  const Bytes checkpointed = ReplayMemory(input, rung)->needed_limit;
  ASSERT_LT(checkpointed, plain);

  MemorySpec memory;
  const Bytes limit = plain - Bytes{1};
  EXPECT_FALSE(PlanMemory(input, memory, limit)->fits) << "nothing is allowed";
  memory.allow_checkpointing = true;
  const auto planned = PlanMemory(input, memory, limit);
  EXPECT_TRUE(planned->fits);
  EXPECT_TRUE(planned->plan.checkpointing);
  EXPECT_EQ(planned->plan.precision, Precision::kFloat32);
  EXPECT_LE(planned->estimate.needed_limit, limit);
  EXPECT_FALSE(PlanMemory(input, memory, plain)->plan.checkpointing) << "parts come first";

  memory.allow_lower_precision = true;
  const auto smallest = PlanMemory(input, memory, KiB(1));
  EXPECT_FALSE(smallest->fits);
  EXPECT_EQ(smallest->plan.micro_batch, 1);
  EXPECT_TRUE(smallest->plan.checkpointing);
  EXPECT_EQ(smallest->plan.precision, Precision::kBfloat16);
}

TEST(StartingPlan, TakesTheGivenOneWhereItIsForThisConfiguration) {
  TrainingConfig config;
  config.batch_size = 8;
  config.grad_accum = 2;
  MemoryPlan given = PlanOf(16, 3);
  given.checkpointing = true;
  EXPECT_EQ(StartingPlan(config, given, MemoryPolicy::kPlan), given);
  EXPECT_EQ(StartingPlan(config, given, MemoryPolicy::kStrict), PlanOf(16, 8));
  EXPECT_EQ(StartingPlan(config, PlanOf(24, 3), MemoryPolicy::kPlan), PlanOf(16, 8));
  EXPECT_EQ(StartingPlan(config, PlanOf(16, 17), MemoryPolicy::kPlan), PlanOf(16, 8));

  config.precision = Precision::kFloat16;
  config.checkpoint_every = 3;
  given.precision = Precision::kBfloat16;
  given.checkpointing = false;
  const MemoryPlan plan = StartingPlan(config, given, MemoryPolicy::kPlan);
  EXPECT_EQ(plan.micro_batch, 3);
  EXPECT_TRUE(plan.checkpointing) << "as the configuration says";
  EXPECT_EQ(plan.precision, Precision::kFloat16);
  EXPECT_EQ(ExecutionOf(config, plan),
            (Execution{.checkpoint_every = 3, .precision = Precision::kFloat16}));
}

TEST(PlanMemory, PassesOnWhatIsWrongWithTheConfiguration) {
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    const auto planned = PlanMemory(Configured(bad, bad), MemorySpec{}, GiB(1));
    EXPECT_EQ(planned.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(planned.status().message().find("train.batch_size"), absl::string_view::npos);
  }
}

TEST(SmallerPlan, HalvesUntilOneRowAndKeepsTheBatch) {
  std::optional<MemoryPlan> plan = PlanOf(24, 11);
  plan->precision = Precision::kBfloat16;
  std::vector<int64_t> seen;
  while ((plan = SmallerPlan(*plan)).has_value()) {
    seen.push_back(plan->micro_batch);
    EXPECT_EQ(plan->effective_batch, 24);
    EXPECT_EQ(plan->precision, Precision::kBfloat16);
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{5, 2, 1}));
}

TEST(PartSizes, SplitsEveryBatchWithoutLosingARow) {
  for (int64_t micro_batch = 1; micro_batch <= 9; ++micro_batch) {
    for (int64_t rows = 0; rows <= 30; ++rows) {
      SCOPED_TRACE(::testing::Message() << rows << " rows of " << micro_batch);
      const std::vector<int64_t> sizes = PartSizes(PlanOf(30, micro_batch), rows);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), rows);
      EXPECT_EQ(static_cast<int64_t>(sizes.size()), (rows + micro_batch - 1) / micro_batch);
      for (size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_GE(sizes[i], 1);
        if (i + 1 < sizes.size()) {
          EXPECT_EQ(sizes[i], micro_batch);
        } else {
          EXPECT_LE(sizes[i], micro_batch);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hpo::memory
