#include "memory/trace/trial_passes.h"

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

// Texts of up to 5 questions and one of 26, every query 40 tokens long.
EstimateInput Questions() {
  EstimateInput input;
  input.model.max_positions = 512;
  input.config.max_length = 128;
  input.workload.task = TaskKind::kMultiQuery;
  input.workload.train_lengths = input.workload.validation_lengths = {{40, 200}};
  input.workload.train_queries = {{1, 90}, {2, 5}, {5, 2}, {26, 1}};
  input.workload.validation_queries = {{1, 9}, {3, 1}};
  return input;
}

constexpr MemoryPlan kPlan{.effective_batch = 8, .micro_batch = 4};

MeasuredSteps LargestOf(const EstimateInput& input, const MemoryPlan& plan = kPlan) {
  return LargestPasses(input, plan).stretches.front();
}

TEST(LargestPasses, APartHoldsTheTextsOfTheMostQuestions) {
  const MeasuredSteps largest = LargestOf(Questions());
  // 26 + 5 + 5 + 2, and again in the second part.
  EXPECT_EQ(largest.steps.front(), (std::vector<BatchShape>{{38, 48}, {38, 48}}));
  EXPECT_EQ(largest.evaluation, (std::vector<BatchShape>{{3 + 3, 48}}));
}

TEST(LargestPasses, PaddingGivesEveryTextTheMostQuestions) {
  EstimateInput input = Questions();
  input.config.pads_queries = true;
  EXPECT_EQ(LargestOf(input).steps.front().front(), (BatchShape{4 * 26, 48}));
  EXPECT_EQ(LargestOf(input).evaluation.front(), (BatchShape{4 * 3, 48}));
}

TEST(LargestPasses, OutliersThatAreLeftOutCountForNothing) {
  EstimateInput input = Questions();
  input.config.pads_queries = true;
  input.config.most_aspects = 5;
  EXPECT_EQ(LargestOf(input).steps.front().front(), (BatchShape{4 * 5, 48}));
  input.config.pads_queries = false;
  EXPECT_EQ(LargestOf(input).steps.front().front(), (BatchShape{5 + 5 + 2 + 2, 48}));
}

// Of so many aspects a text asks no more than two queries and three for each aspect.
TEST(LargestPasses, AspectsAreNotQueriesWhereSpansAreAskedFor) {
  EstimateInput input = Questions();
  input.workload.task = TaskKind::kMultiQuerySpans;
  input.config.pads_queries = true;
  for (const auto& [most_aspects, queries] :
       {std::pair<int64_t, int64_t>{7, 5}, {8, 26}, {int64_t{1} << 62, 26}, {1, 5}}) {
    input.config.most_aspects = most_aspects;
    EXPECT_EQ(LargestOf(input).steps.front().front(), (BatchShape{4 * queries, 48}))
        << most_aspects;
  }
}

// The first piece meets no gradients; those after it do.
TEST(LargestPasses, PiecesAreOfSoManyQueries) {
  EstimateInput input = Questions();
  input.config.queries_at_once = 10;
  EXPECT_EQ(LargestOf(input, {.effective_batch = 4, .micro_batch = 4}).steps.front(),
            (std::vector<BatchShape>{{10, 48}, {10, 48}}));
  input.config.queries_at_once = 30;
  EXPECT_EQ(LargestOf(input, {.effective_batch = 4, .micro_batch = 4}).steps.front(),
            (std::vector<BatchShape>{{30, 48}, {8, 48}}));
  input.config.queries_at_once = 100;
  EXPECT_EQ(LargestOf(input, {.effective_batch = 4, .micro_batch = 4}).steps.front(),
            (std::vector<BatchShape>{{38, 48}}));
}

TEST(LargestPasses, NoBatchHasMoreTextsThanThereAre) {
  EstimateInput input = Questions();
  input.workload.train_queries = {{2, 3}};
  EXPECT_EQ(LargestOf(input, {.effective_batch = 64, .micro_batch = 64}).steps.front(),
            (std::vector<BatchShape>{{6, 48}}));
}

EstimateInput Unpadded() {
  EstimateInput input;
  input.model.family = "bert";
  input.model.max_positions = 512;
  input.config.max_length = 64;
  input.config.unpadded = true;
  input.workload.train_lengths = {{10, 5}, {30, 2}, {70, 1}, {200, 2}};
  input.workload.validation_lengths = {{9, 1}, {40, 3}};
  return input;
}

TEST(LargestPasses, PackedPartsHaveTheLongestRowsAndThoseNextToThem) {
  const MeasuredSteps largest = LargestOf(Unpadded());
  const BatchShape first = BatchShape::Of({{3, 64}, {1, 30}});  // truncated
  EXPECT_EQ(first.rows, 4);
  EXPECT_EQ(first.tokens, 64);
  EXPECT_EQ(first.TotalTokens(), 3 * 64 + 30);
  EXPECT_EQ(largest.steps.front(),
            (std::vector<BatchShape>{first, BatchShape::Of({{1, 30}, {3, 10}})}));
  EXPECT_EQ(largest.evaluation, (std::vector<BatchShape>{BatchShape::Of({{3, 40}, {1, 9}})}));
}

TEST(LargestPasses, PackedPartsHaveNoMoreRowsThanThereAre) {
  EstimateInput input = Unpadded();
  EXPECT_EQ(LargestOf(input, {.effective_batch = 100, .micro_batch = 7}).steps.front().back(),
            BatchShape::Of({{3, 10}}));
  input.workload.train_lengths.clear();
  EXPECT_EQ(LargestOf(input).steps.front(),
            (std::vector<BatchShape>{BatchShape::Of({{4, 64}}), BatchShape::Of({{4, 64}})}));
  input.workload.train_lengths = {{-3, 2}, {0, -1}, {5, 0}};
  EXPECT_EQ(LargestOf(input).steps.front(), (std::vector<BatchShape>{BatchShape::Of({{2, 1}})}));
}

// Rows by rows, not by the longest or by the sum alone.
TEST(DecidingPasses, KeepPackedBatchesThatNoOtherCovers) {
  const auto kept = [](const std::vector<PackedRows>& batches) {
    TrialPasses all;
    for (const PackedRows& rows : batches) {
      all.stretches.push_back({.steps = {{BatchShape::Of(rows)}}});
    }
    return DecidingPasses(all).stretches.front().steps.size();
  };
  EXPECT_EQ(kept({{{4, 20}}, {{4, 19}}, {{3, 20}}}), 1u);
  EXPECT_EQ(kept({{{1, 30}, {3, 5}}, {{4, 20}}}), 2u);            // the longer row, or more tokens
  EXPECT_EQ(kept({{{1, 30}, {3, 20}}, {{1, 29}, {3, 20}}}), 1u);  // groups alike
  EXPECT_EQ(kept({{{1, 30}, {3, 20}}, {{4, 20}}}), 1u);           // smaller groups
  EXPECT_EQ(kept({{{4, 20}}, {{1, 20}, {3, 19}}}), 2u);           // a larger one
  EXPECT_EQ(kept({{{2, 20}, {2, 10}}, {{4, 10}, {1, 1}}}), 2u);   // another row
}

TEST(LargestPasses, WithoutQuestionsATextIsARow) {
  EstimateInput input = Questions();
  input.workload.train_queries.clear();
  input.config.queries_at_once = 1;
  EXPECT_EQ(LargestOf(input).steps.front(), (std::vector<BatchShape>{{4, 48}, {4, 48}}));
}

}  // namespace
}  // namespace hpo::memory
