#include "memory/learned/nonnegative_least_squares.h"

#include <cmath>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

std::vector<double> Row(const Columns& a, const std::vector<size_t>& columns, size_t row) {
  std::vector<double> values;
  for (const size_t column : columns) values.push_back(a[column][row]);
  return values;
}

double SquaredError(const Columns& a, const std::vector<double>& b, const NonNegativeFit& fit) {
  double sum = 0.0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double error = b[i] - fit.Predict(Row(a, fit.columns, i));
    sum += error * error;
  }
  return sum;
}

Columns RandomColumns(Rng& rng, size_t rows, size_t columns) {
  Columns a(columns, std::vector<double>(rows));
  for (auto& column : a) {
    for (double& value : column) value = rng.Uniform();
  }
  return a;
}

TEST(FitNonNegative, RecoversSparseCoefficients) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, 0);
    const Columns a = RandomColumns(rng, 40, 15);
    std::vector<double> b(40);
    for (size_t i = 0; i < 40; ++i) b[i] = 2.0 * a[3][i] + 0.5 * a[11][i];
    const NonNegativeFit fit = FitNonNegative(a, b);
    ASSERT_EQ(fit.columns, (std::vector<size_t>{3, 11})) << "seed " << seed;
    EXPECT_NEAR(fit.coefficients[0], 2.0, 1e-9);
    EXPECT_NEAR(fit.coefficients[1], 0.5, 1e-9);
  }
}

// The conditions of Karush, Kuhn and Tucker: no column that takes part could gain, and none that
// does not would with a positive coefficient.
TEST(FitNonNegative, IsOptimal) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed, 1);
    const size_t rows = 5 + rng.Below(40);
    const size_t columns = 1 + rng.Below(60);
    const Columns a = RandomColumns(rng, rows, columns);
    std::vector<double> b(rows);
    for (double& value : b) value = rng.Uniform() - 0.3;
    const NonNegativeFit fit = FitNonNegative(a, b);
    for (size_t j = 0; j < columns; ++j) {
      double gradient = 0.0;
      for (size_t i = 0; i < rows; ++i) {
        gradient += a[j][i] * (b[i] - fit.Predict(Row(a, fit.columns, i)));
      }
      const bool in = std::find(fit.columns.begin(), fit.columns.end(), j) != fit.columns.end();
      EXPECT_LE(gradient, 1e-6) << "seed " << seed << ", column " << j;
      EXPECT_GE(gradient, in ? -1e-6 : -1e300) << "seed " << seed << ", column " << j;
    }
    for (const double coefficient : fit.coefficients) EXPECT_GT(coefficient, 0.0);
  }
}

TEST(FitNonNegative, WhatDependsOnOthersOrIsZeroGetsNoPart) {
  const Columns a = {{1, 2, 3}, {2, 4, 6}, {0, 0, 0}, {1, 0, 0}};
  const std::vector<double> b = {2, 2, 3};
  const NonNegativeFit fit = FitNonNegative(a, b);
  EXPECT_EQ(fit.columns.size(), 2u);
  EXPECT_NEAR(SquaredError(a, b, fit), 0.0, 1e-12);
}

TEST(FitNonNegative, NothingIsExplainedByNothing) {
  EXPECT_TRUE(FitNonNegative({}, std::vector<double>{1.0}).columns.empty());
  EXPECT_TRUE(FitNonNegative({{1.0, 1.0}}, std::vector<double>{-1.0, -1.0}).columns.empty());
  EXPECT_EQ(NonNegativeFit().Predict({}), 0.0);
  EXPECT_EQ(NonNegativeFit().Leverage({}), 0.0);
}

// With all columns in, the error without a row is its error by (1 - leverage).
TEST(FitNonNegative, LeverageGivesTheErrorWithoutTheRow) {
  Rng rng(5, 2);
  const Columns a = RandomColumns(rng, 30, 3);
  std::vector<double> b(30);
  for (size_t i = 0; i < 30; ++i) b[i] = a[0][i] + a[1][i] + a[2][i] + 0.1 * rng.Uniform();
  const NonNegativeFit fit = FitNonNegative(a, b);
  ASSERT_EQ(fit.columns.size(), 3u);
  double sum = 0.0;
  for (size_t out = 0; out < 30; ++out) {
    Columns rest = a;
    for (auto& column : rest) column.erase(column.begin() + static_cast<ptrdiff_t>(out));
    std::vector<double> b_rest = b;
    b_rest.erase(b_rest.begin() + static_cast<ptrdiff_t>(out));
    const NonNegativeFit without = FitNonNegative(rest, b_rest);
    ASSERT_EQ(without.columns, fit.columns);
    const std::vector<double> row = Row(a, fit.columns, out);
    const double leverage = fit.Leverage(row);
    sum += leverage;
    EXPECT_NEAR(b[out] - without.Predict(row), (b[out] - fit.Predict(row)) / (1.0 - leverage),
                1e-9);
  }
  EXPECT_NEAR(sum, 3.0, 1e-9) << "leverages add up to the number of columns";
}

}  // namespace
}  // namespace hpo::memory
