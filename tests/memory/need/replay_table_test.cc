#include "memory/need/replay_table.h"

#include <map>

#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

EstimateInput OnCard(int64_t batch_size, int64_t grad_accum = 1) {
  EstimateInput input = BertBaseInput();
  input.model.num_layers = 2;
  input.config.batch_size = batch_size;
  input.config.grad_accum = grad_accum;
  input.device.kind = "cuda";
  input.device.base = MiB(640);
  return input;
}

TEST(ReplayTable, AnswersAsTheReplayDoes) {
  ReplayTable table;
  for (int round = 0; round < 2; ++round) {
    for (const int64_t batch_size : {1, 6, 16}) {
      for (const int64_t grad_accum : {1, 2, 5}) {
        const EstimateInput input = OnCard(batch_size, grad_accum);
        for (const int64_t micro_batch : {int64_t{1}, batch_size}) {
          const MemoryPlan plan = PlanOf(batch_size * grad_accum, micro_batch);
          EXPECT_EQ(*table.Replay(input, plan), *ReplayMemory(input, plan));
        }
      }
    }
  }
}

// Without data an epoch has no last batch, so that equal parts are alike however many they are.
TEST(ReplayTable, AnswersAsTheReplayDoesForAnyNumberOfParts) {
  ReplayTable table;
  for (const std::map<int64_t, int64_t>& lengths :
       {std::map<int64_t, int64_t>{}, std::map<int64_t, int64_t>{{40, 70}, {90, 1}}}) {
    for (const int64_t rows : {16, 15, 17, 8, 33, 21, 24, 13, 9}) {
      EstimateInput input = OnCard(8);
      input.workload.train_lengths = lengths;
      EXPECT_EQ(*table.Replay(input, PlanOf(rows, 8)), *ReplayMemory(input, PlanOf(rows, 8)))
          << rows << " rows in parts of 8";
    }
  }
}

// What a configuration shares with another must not make it the other.
TEST(ReplayTable, TellsApartWhatMemorySees) {
  ReplayTable table;
  const MemoryPlan plan = PlanOf(16, 16);
  const Bytes first = table.Replay(OnCard(16), plan)->needed_limit;
  EXPECT_GT(table.Replay(OnCard(16), PlanOf(32, 16))->needed_limit, first);
  EstimateInput other = OnCard(16);
  other.config.dropout = 0.0;
  EXPECT_EQ(*table.Replay(other, plan), *ReplayMemory(other, plan));
  other = OnCard(16);
  other.config.eval_batch_multiplier = 16;
  EXPECT_EQ(*table.Replay(other, plan), *ReplayMemory(other, plan));
  other = OnCard(16);
  other.workload.train_lengths = {{20, 900}, {400, 1}};
  EXPECT_EQ(*table.Replay(other, plan), *ReplayMemory(other, plan));
  other = OnCard(16);
  other.device.base = GiB(1);
  EXPECT_EQ(table.Replay(other, plan)->needed_limit, first + MiB(384));
}

TEST(ReplayTable, KnowsWhatIsAboveALimitWhateverWasAskedBefore) {
  const EstimateInput input = OnCard(16);
  const MemoryPlan plan = PlanOf(16, 16);
  const Bytes need = ReplayMemory(input, plan)->needed_limit;
  ReplayTable upwards;
  ReplayTable downwards;
  const Bytes limits[] = {Bytes{}, need - GiB(1), need - Bytes{1}, need, need + GiB(1)};
  for (const Bytes limit : limits) {
    EXPECT_EQ(upwards.ReplayWithin(input, plan, limit)->needed_limit <= limit, limit >= need);
  }
  EXPECT_EQ(downwards.Replay(input, plan)->needed_limit, need);
  for (const Bytes limit : limits) {
    EXPECT_EQ(*downwards.ReplayWithin(input, plan, limit),
              *upwards.ReplayWithin(input, plan, limit));
  }
}

// A card smaller than its headroom has a limit of nothing.
TEST(ReplayTable, AnswersALimitOfNothingAsOftenAsItIsAsked) {
  const EstimateInput input = OnCard(16);
  const MemoryPlan plan = PlanOf(16, 16);
  for (const Bytes limit : {Bytes{}, Bytes{-1}, Bytes{} - MiB(300)}) {
    SCOPED_TRACE(limit.count);
    ReplayTable table;
    const MemoryEstimate first = *table.ReplayWithin(input, plan, limit);
    EXPECT_GT(first.needed_limit, limit);
    EXPECT_EQ(*table.ReplayWithin(input, plan, limit), first);
  }
}

TEST(ReplayTable, PassesOnWhatIsWrong) {
  ReplayTable table;
  EXPECT_EQ(table.Replay(OnCard(0), PlanOf(16, 16)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table.Replay(OnCard(16), PlanOf(16, 0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo::memory
