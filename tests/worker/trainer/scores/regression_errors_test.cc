#include "worker/trainer/scores/regression_errors.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

void Add(RegressionErrors& errors, std::vector<float> predicted, std::vector<float> actual) {
  errors.AddRow(predicted, actual);
}

// Values of numpy and scipy.stats.pearsonr for predicted 1, 2, 4, 3 and actual 2, 2, 5, 1.
TEST(RegressionErrorsTest, OneColumnHasTheReferencesValues) {
  RegressionErrors errors(1);
  Add(errors, {1}, {2});
  Add(errors, {2}, {2});
  Add(errors, {4}, {5});
  Add(errors, {3}, {1});
  const Metrics metrics = errors.Summarize();
  EXPECT_EQ(errors.num_rows(), 4);
  EXPECT_DOUBLE_EQ(metrics.at("loss"), 1.5);
  EXPECT_DOUBLE_EQ(metrics.at("rmse"), std::sqrt(1.5));
  EXPECT_DOUBLE_EQ(metrics.at("mae"), 1.0);
  // Deviations -1.5, -0.5, 1.5, 0.5 and -0.5, -0.5, 2.5, -1.5: 4 / sqrt(5 * 9).
  EXPECT_NEAR(metrics.at("pearson"), 4.0 / std::sqrt(45.0), 1e-15);
}

TEST(RegressionErrorsTest, ColumnsAreMeansOfOneAnother) {
  RegressionErrors errors(2);
  Add(errors, {1, -1}, {1, 1});
  Add(errors, {2, -2}, {2, 2});
  Add(errors, {3, -3}, {3, 3});
  const Metrics metrics = errors.Summarize();
  EXPECT_NEAR(metrics.at("pearson"), 0.0, 1e-15);  // 1 and -1
  EXPECT_DOUBLE_EQ(metrics.at("mae"), 2.0);        // 0 and 4
  EXPECT_DOUBLE_EQ(metrics.at("loss"), 56.0 / 6.0);
}

TEST(RegressionErrorsTest, WhatNeverVariesCorrelatesWithNothing) {
  for (const bool swap : {false, true}) {
    RegressionErrors errors(1);
    for (const float value : {1.0f, 2.0f, 3.0f}) {
      swap ? Add(errors, {7}, {value}) : Add(errors, {value}, {7});
    }
    EXPECT_EQ(errors.Summarize().at("pearson"), 0.0);
  }
}

// Sums of squares would lose every digit here.
TEST(RegressionErrorsTest, LargeNumbersKeepTheirDigits) {
  RegressionErrors errors(1);
  for (const float value : {0.0f, 1.0f, 2.0f, 3.0f}) {
    Add(errors, {8388608.0f + value}, {8388608.0f + 2 * value});
  }
  const Metrics metrics = errors.Summarize();
  EXPECT_NEAR(metrics.at("pearson"), 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(metrics.at("mae"), 1.5);
}

}  // namespace
}  // namespace hpo::trainer
