#include "sampler/numeric/cholesky_factor.h"

#include <cmath>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

using Matrix = std::vector<std::vector<double>>;

// B B' + I of random entries.
Matrix RandomCovariance(size_t size, uint64_t seed) {
  Rng rng(seed, 1);
  Matrix factor(size, std::vector<double>(size));
  for (auto& row : factor) {
    for (double& entry : row) entry = rng.Uniform() - 0.5;
  }
  Matrix result(size, std::vector<double>(size));
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      for (size_t k = 0; k < size; ++k) result[i][j] += factor[i][k] * factor[j][k];
    }
    result[i][i] += 1.0;
  }
  return result;
}

void AppendRows(const Matrix& matrix, size_t to, CholeskyFactor& factor) {
  for (size_t i = factor.size(); i < to; ++i) {
    factor.Append({matrix[i].data(), i}, matrix[i][i]);
  }
}

class CholeskyFactorOfSize : public testing::TestWithParam<size_t> {};

TEST_P(CholeskyFactorOfSize, SolvesTheSystem) {
  const size_t size = GetParam();
  const Matrix matrix = RandomCovariance(size, size);
  CholeskyFactor factor;
  AppendRows(matrix, size, factor);
  std::vector<double> x(size);
  for (size_t i = 0; i < size; ++i) x[i] = std::sin(static_cast<double>(i));
  std::vector<double> b(size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) b[i] += matrix[i][j] * x[j];
  }
  factor.SolveLower(b);
  factor.SolveUpper(b);
  for (size_t i = 0; i < size; ++i) EXPECT_NEAR(b[i], x[i], 1e-11);
}

TEST_P(CholeskyFactorOfSize, InverseTimesMatrixIsTheIdentity) {
  const size_t size = GetParam();
  const Matrix matrix = RandomCovariance(size, size + 100);
  CholeskyFactor factor;
  AppendRows(matrix, size, factor);
  const std::vector<double> lower = factor.Inverse();
  const auto inverse = [&](size_t i, size_t j) {
    return i >= j ? lower[i * (i + 1) / 2 + j] : lower[j * (j + 1) / 2 + i];
  };
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      double product = 0.0;
      for (size_t k = 0; k < size; ++k) product += inverse(i, k) * matrix[k][j];
      EXPECT_NEAR(product, i == j ? 1.0 : 0.0, 1e-11) << i << ", " << j;
    }
  }
}

TEST_P(CholeskyFactorOfSize, GrownAgainItIsTheSameToTheLastBit) {
  const size_t size = GetParam();
  const Matrix matrix = RandomCovariance(size, 7);
  const Matrix other = RandomCovariance(size, 8);
  CholeskyFactor straight;
  AppendRows(matrix, size, straight);
  CholeskyFactor regrown;
  AppendRows(matrix, size / 2, regrown);
  AppendRows(other, size, regrown);
  regrown.Truncate(size / 2);
  AppendRows(matrix, size, regrown);
  std::vector<double> a(size, 1.0);
  std::vector<double> b(size, 1.0);
  straight.SolveLower(a);
  regrown.SolveLower(b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(straight.LogDeterminant(), regrown.LogDeterminant());
}

INSTANTIATE_TEST_SUITE_P(Sizes, CholeskyFactorOfSize, testing::Values(1, 2, 3, 8, 33));

TEST(CholeskyFactor, DeterminantOfADiagonal) {
  CholeskyFactor factor;
  EXPECT_EQ(factor.LogDeterminant(), 0.0);
  const std::vector<double> zeros(3, 0.0);
  for (size_t i = 0; i < 3; ++i) factor.Append({zeros.data(), i}, std::exp(1.0 + i));
  EXPECT_NEAR(factor.LogDeterminant(), 6.0, 1e-14);
}

// Solving a part uses the leading rows alone, as a prediction from the observed points does.
TEST(CholeskyFactor, SolvesALeadingPart) {
  const Matrix matrix = RandomCovariance(9, 3);
  CholeskyFactor whole;
  AppendRows(matrix, 9, whole);
  CholeskyFactor part;
  AppendRows(matrix, 5, part);
  std::vector<double> a(5, 2.0);
  std::vector<double> b(5, 2.0);
  whole.SolveLower(a);
  whole.SolveUpper(a);
  part.SolveLower(b);
  part.SolveUpper(b);
  EXPECT_EQ(a, b);
}

// The same point twice without noise: singular, yet every number stays finite.
TEST(CholeskyFactor, SurvivesASingularMatrix) {
  CholeskyFactor factor;
  factor.Append({}, 2.0);
  const std::vector<double> same = {2.0};
  factor.Append(same, 2.0);
  EXPECT_NEAR(factor.LogDeterminant(), std::log(2.0) + std::log(2e-13), 1e-9);
  std::vector<double> x = {1.0, 1.0};
  factor.SolveLower(x);
  factor.SolveUpper(x);
  EXPECT_TRUE(std::isfinite(x[0]) && std::isfinite(x[1]));
}

}  // namespace
}  // namespace hpo::sampler
