#include "common/memory/trial_passes.h"

#include "gtest/gtest.h"

namespace hpo {
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

TEST(LargestPasses, WithoutQuestionsATextIsARow) {
  EstimateInput input = Questions();
  input.workload.train_queries.clear();
  input.config.queries_at_once = 1;
  EXPECT_EQ(LargestOf(input).steps.front(), (std::vector<BatchShape>{{4, 48}, {4, 48}}));
}

}  // namespace
}  // namespace hpo
