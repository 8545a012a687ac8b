#include "worker/trainer/scores/metrics.h"

#include <cmath>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

TEST(ClassificationCounts, SingleLabelMatchesHandComputedValues) {
  // Label 0: TP 2, FP 1, FN 1 -> 2/3. Label 1: TP 1, FP 1, FN 1 -> 1/2. Label 2: TP 0, FP 1, FN 1.
  ClassificationCounts counts(4, /*multi_label=*/false);
  const std::pair<int64_t, int64_t> rows[] = {{0, 0}, {0, 0}, {1, 1}, {1, 0}, {2, 1}, {0, 2}};
  for (const auto& [predicted, actual] : rows) counts.AddRow(predicted, actual);
  const Metrics metrics = counts.Summarize();
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(metrics.at("micro_f1"), 0.5);
  // Label 3 neither occurs nor is predicted: it is left out.
  EXPECT_DOUBLE_EQ(metrics.at("macro_f1"), (2.0 / 3.0 + 0.5 + 0.0) / 3.0);
  EXPECT_EQ(counts.num_rows(), 6);
  // scikit-learn's matthews_corrcoef: (6*3 - (3*3 + 2*2 + 1*1)) / sqrt((36 - 14) * (36 - 14)).
  EXPECT_DOUBLE_EQ(metrics.at("mcc"), 4.0 / 22.0);
}

TEST(ClassificationCounts, MajorityOnlyHasTheKnownMacroF1) {
  ClassificationCounts counts(2, false);
  for (int i = 0; i < 60; ++i) counts.AddRow(0, 0);
  for (int i = 0; i < 40; ++i) counts.AddRow(0, 1);
  EXPECT_DOUBLE_EQ(counts.Summarize().at("macro_f1"), 0.75 / 2.0);
  EXPECT_DOUBLE_EQ(counts.Summarize().at("mcc"), 0.0);
}

TEST(ClassificationCounts, MultiLabelCountsEveryDecision) {
  ClassificationCounts counts(3, /*multi_label=*/true);
  const std::vector<uint8_t> none = {0, 0, 0}, first = {1, 0, 0}, two = {1, 1, 0};
  counts.AddRow(first, two);   // TP, FN
  counts.AddRow(two, two);     // TP, TP
  counts.AddRow(first, none);  // FP
  const Metrics metrics = counts.Summarize();
  EXPECT_DOUBLE_EQ(metrics.at("accuracy"), 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(metrics.at("micro_f1"), 2.0 * 3 / (2 * 3 + 1 + 1));
  // Label 0: 4/5, label 1: 2/3, label 2 (never seen) counts 0.
  EXPECT_DOUBLE_EQ(metrics.at("macro_f1"), (0.8 + 2.0 / 3.0 + 0.0) / 3.0);
  // TP 3, FP 1, FN 1, TN 4: (3*4 - 1*1) / sqrt(4 * 4 * 5 * 5).
  EXPECT_DOUBLE_EQ(metrics.at("mcc"), 11.0 / 20.0);
}

TEST(ClassificationCounts, TwoClassesHaveTheUsualMcc) {
  ClassificationCounts counts(2, false);
  const struct {
    int64_t predicted, actual;
    int times;
  } rows[] = {{1, 1, 5}, {1, 0, 2}, {0, 1, 1}, {0, 0, 4}};
  for (const auto& row : rows) {
    for (int i = 0; i < row.times; ++i) counts.AddRow(row.predicted, row.actual);
  }
  EXPECT_DOUBLE_EQ(counts.Summarize().at("mcc"),
                   (5.0 * 4.0 - 2.0 * 1.0) / std::sqrt(7.0 * 6.0 * 6.0 * 5.0));
}

TEST(ClassificationCounts, NothingRightIsZeroNotNan) {
  ClassificationCounts counts(2, false);
  counts.AddRow(0, 1);
  EXPECT_DOUBLE_EQ(counts.Summarize().at("macro_f1"), 0.0);
  EXPECT_DOUBLE_EQ(counts.Summarize().at("accuracy"), 0.0);
}

}  // namespace
}  // namespace hpo::trainer
