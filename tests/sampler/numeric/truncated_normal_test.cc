#include "sampler/numeric/truncated_normal.h"

#include <cmath>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

// Relative to the expected value, with a floor for values near zero.
void ExpectClose(double actual, double expected, double tolerance) {
  EXPECT_NEAR(actual, expected, tolerance * std::max(std::abs(expected), 1e-3));
}

TEST(TruncatedNormal, CdfAgreesWithSciPy) {
  const auto golden = ReadGolden("parzen.json");
  for (const auto& row : golden["log_normal_cdf"]) {
    SCOPED_TRACE(row.dump());
    ExpectClose(LogNormalCdf(row[0]), row[1], 1e-13);
  }
}

TEST(TruncatedNormal, QuantileAgreesWithSciPy) {
  const auto golden = ReadGolden("parzen.json");
  for (const auto& row : golden["normal_quantile_of_log"]) {
    SCOPED_TRACE(row.dump());
    ExpectClose(NormalQuantileOfLog(row[0]), row[1], 1e-11);
  }
}

TEST(TruncatedNormal, MassAgreesWithHighPrecision) {
  const auto golden = ReadGolden("parzen.json");
  for (const auto& row : golden["log_normal_mass"]) {
    SCOPED_TRACE(row.dump());
    ExpectClose(LogNormalMass(row[0], row[1]), row[2], 1e-11);
    ExpectClose(LogNormalMass(-row[1].get<double>(), -row[0].get<double>()), row[2], 1e-11);
  }
}

TEST(TruncatedNormal, TruncatedQuantileAgreesWithSciPy) {
  const auto golden = ReadGolden("parzen.json");
  for (const auto& row : golden["truncated_normal_quantile"]) {
    SCOPED_TRACE(row.dump());
    ExpectClose(TruncatedNormalQuantile(row[0], row[1], row[2]), row[3], 1e-8);
  }
}

TEST(TruncatedNormal, InfiniteEnds) {
  EXPECT_EQ(LogNormalCdf(-kUnbounded), -kUnbounded);
  EXPECT_EQ(LogNormalCdf(kUnbounded), 0.0);
  EXPECT_EQ(LogNormalMass(-kUnbounded, kUnbounded), 0.0);
  EXPECT_DOUBLE_EQ(LogNormalMass(-kUnbounded, 0.0), std::log(0.5));
  EXPECT_DOUBLE_EQ(LogNormalMass(-kUnbounded, -3.0), LogNormalCdf(-3.0));
  EXPECT_EQ(NormalQuantileOfLog(0.0), kUnbounded);
  EXPECT_EQ(NormalQuantileOfLog(-kUnbounded), -kUnbounded);
  EXPECT_NEAR(TruncatedNormalQuantile(0.5, -kUnbounded, kUnbounded), 0.0, 1e-12);
}

TEST(TruncatedNormal, EmptyIntervalHasNoMass) {
  EXPECT_EQ(LogNormalMass(1.0, 1.0), -kUnbounded);
  EXPECT_EQ(LogNormalMass(2.0, 1.0), -kUnbounded);
}

// The narrow-interval formula and the differences of the distribution function meet here.
TEST(TruncatedNormal, MassIsAdditive) {
  for (const double low : {-40.0, -3.0, -0.2, 0.0, 1.5, 20.0}) {
    for (const double width : {1e-6, 5e-5, 5e-4, 2e-3, 0.1}) {
      SCOPED_TRACE(testing::Message() << low << " + " << width);
      const double whole = LogNormalMass(low, low + width);
      const double halves = LogAddExp(LogNormalMass(low, low + width / 2),
                                      LogNormalMass(low + width / 2, low + width));
      EXPECT_NEAR(whole, halves, 1e-7);
    }
  }
}

TEST(TruncatedNormal, QuantileInvertsTheCdf) {
  for (const double x : {-500.0, -38.5, -12.0, -1.0, -0.01, 0.5, 3.0, 6.0}) {
    SCOPED_TRACE(x);
    EXPECT_NEAR(NormalQuantileOfLog(LogNormalCdf(x)), x, 1e-6 * std::max(1.0, std::abs(x)));
  }
}

TEST(TruncatedNormal, TruncatedQuantileStaysInsideAndIncreases) {
  const std::pair<double, double> intervals[] = {{-1.0, 2.0},   {50.0, 51.0}, {-200.0, -199.0},
                                                 {-1e-9, 1e-9}, {0.3, 0.3},   {-1e8, 1e8}};
  for (const auto& [low, high] : intervals) {
    SCOPED_TRACE(testing::Message() << low << " to " << high);
    double previous = low;
    for (double q = 0.0; q <= 1.0; q += 0.05) {
      const double x = TruncatedNormalQuantile(q, low, high);
      EXPECT_GE(x, previous);
      EXPECT_LE(x, high);
      previous = x;
    }
  }
}

TEST(TruncatedNormal, LogAddExpHandlesInfinities) {
  EXPECT_EQ(LogAddExp(-kUnbounded, -kUnbounded), -kUnbounded);
  EXPECT_EQ(LogAddExp(-kUnbounded, 2.0), 2.0);
  EXPECT_DOUBLE_EQ(LogAddExp(1000.0, 1000.0), 1000.0 + std::log(2.0));
}

}  // namespace
}  // namespace hpo::sampler
