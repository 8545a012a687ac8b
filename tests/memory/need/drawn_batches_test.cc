#include "memory/need/drawn_batches.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

EstimateInput Varying() {
  EstimateInput input = BertBaseInput();
  input.workload.train_lengths = {{20, 5}, {40, 3}, {300, 2}};
  input.workload.validation_lengths = {{17, 3}, {90, 2}};
  return input;
}

TEST(DrawBatches, ThereAreNoneWhereNoLengthIsKnown) {
  const DrawnBatches drawn = DrawBatches(BertBaseInput(), PlanOf(4, 2), 5);
  EXPECT_THAT(drawn.steps, IsEmpty());
  EXPECT_THAT(drawn.evaluation, IsEmpty());
}

// Ten rows, four at a time: one of the three steps of each epoch has two.
TEST(DrawBatches, AnEpochHasEveryRowOnce) {
  EstimateInput input = Varying();
  input.config.unpadded = true;
  const DrawnBatches drawn = DrawBatches(input, PlanOf(4, 2), 6);
  ASSERT_THAT(drawn.steps, SizeIs(6));
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    int64_t tokens = 0;
    int64_t all_rows = 0;
    for (size_t step = 3 * epoch; step < 3 * epoch + 3; ++step) {
      int64_t rows = 0;
      int64_t most = 300;
      for (const BatchShape& part : drawn.steps[step]) {
        EXPECT_LE(part.tokens, most);  // the longest rows come first
        most = part.tokens;
        rows += part.rows;
        tokens += part.TotalTokens();
      }
      EXPECT_TRUE(rows == 2 || rows == 4);
      all_rows += rows;
    }
    EXPECT_EQ(all_rows, 10);
    EXPECT_EQ(tokens, 5 * 20 + 3 * 40 + 2 * 300);
  }
  EXPECT_NE(drawn.steps[0], drawn.steps[3]);
}

TEST(DrawBatches, RowsArePaddedAndTruncatedAsTheyRun) {
  EstimateInput input = Varying();
  input.config.max_length = 64;
  for (const auto& step : DrawBatches(input, PlanOf(4, 4), 8).steps) {
    ASSERT_THAT(step, SizeIs(1));
    EXPECT_TRUE(step.front().tokens == 32 || step.front().tokens == 48 ||
                step.front().tokens == 64);
  }
  EXPECT_THAT(
      DrawBatches(input, PlanOf(4, 4), 8).evaluation,
      ElementsAre(BatchShape{.rows = 4, .tokens = 64}, BatchShape{.rows = 1, .tokens = 32}));
}

TEST(DrawBatches, TextsAskTheirQueries) {
  EstimateInput input = Varying();
  input.workload.task = TaskKind::kMultiQuery;
  input.workload.train_queries = {{1, 2}, {3, 2}};
  int64_t rows = 0;
  for (const auto& step : DrawBatches(input, PlanOf(2, 2), 2).steps) rows += step.front().rows;
  EXPECT_EQ(rows, 2 * 1 + 2 * 3);
  input.config.pads_queries = true;
  for (const auto& step : DrawBatches(input, PlanOf(4, 4), 2).steps) {
    EXPECT_EQ(step.front().rows, 4 * 3);
  }
  input.config.queries_at_once = 5;
  EXPECT_THAT(DrawBatches(input, PlanOf(4, 4), 1).steps.front(), SizeIs(2));  // 8 answered
}

// The evaluation is no matter of chance: its first batches are the heaviest, its last the lightest.
TEST(DrawBatches, AnEvaluationBeginsWithWhatIsHeaviest) {
  EstimateInput input = Varying();
  input.workload.validation_lengths = {{17, 6}, {40, 2}, {90, 3}};
  EXPECT_THAT(DrawBatches(input, PlanOf(2, 2), 1).evaluation,
              ElementsAre(BatchShape{.rows = 2, .tokens = 96}, BatchShape{.rows = 2, .tokens = 96},
                          BatchShape{.rows = 1, .tokens = 32}));
  input.workload.task = TaskKind::kMultiQuery;
  input.workload.validation_queries = {{1, 2}, {2, 1}, {3, 1}, {4, 1}};
  EXPECT_THAT(
      DrawBatches(input, PlanOf(2, 2), 1).evaluation,
      ElementsAre(BatchShape{.rows = 4 + 3, .tokens = 96}, BatchShape{.rows = 2 + 1, .tokens = 32},
                  BatchShape{.rows = 1, .tokens = 32}));
}

// Rows of two lengths, of which one batch of fifty holds both.
TEST(DrawBatches, RowsOfLikeLengthMeetWhereTheyAreGrouped) {
  EstimateInput input = Varying();
  input.config.unpadded = true;
  input.workload.train_lengths = {{20, 100}, {40, 98}};
  const auto mixed = [&input] {
    const DrawnBatches drawn = DrawBatches(input, PlanOf(4, 4), 50);
    EXPECT_THAT(drawn.steps, SizeIs(50));
    int64_t rows = 0;
    int64_t of_two_lengths = 0;
    for (const auto& step : drawn.steps) {
      rows += step.front().rows;
      of_two_lengths += step.front().packed.size() > 1 ? 1 : 0;
    }
    EXPECT_EQ(rows, 198);
    return of_two_lengths;
  };
  EXPECT_GT(mixed(), 25);
  input.config.group_by_length = true;
  EXPECT_EQ(mixed(), 1);
  // Of a pool in any order.
  const DrawnBatches drawn = DrawBatches(input, PlanOf(4, 4), 50);
  EXPECT_FALSE(std::is_sorted(
      drawn.steps.begin(), drawn.steps.end(),
      [](const auto& a, const auto& b) { return a.front().tokens > b.front().tokens; }));
}

TEST(DrawBatches, ManyRowsAreNotDrawn) {
  EstimateInput input = Varying();
  input.workload.train_lengths = {{20, int64_t{1} << 40}, {40, int64_t{1} << 40}};
  EXPECT_THAT(DrawBatches(input, PlanOf(1 << 20, 1 << 20), 2).steps, IsEmpty());
  EXPECT_THAT(DrawBatches(input, PlanOf(64, 8), 2).steps, SizeIs(2));
}

}  // namespace
}  // namespace hpo::memory
