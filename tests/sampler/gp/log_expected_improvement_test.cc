#include "sampler/gp/log_expected_improvement.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

using Function = ValueAndSlope (*)(double);

void ExpectGolden(Function function, const char* table) {
  const auto golden = ReadGolden("gaussian_process.json");
  ASSERT_GE(golden[table].size(), 20u);
  for (const auto& row : golden[table]) {
    SCOPED_TRACE(row.dump());
    const ValueAndSlope actual = function(row[0]);
    const double value = row[1];
    const double slope = row[2];
    // Logarithms near 0 are of numbers near 1: there the absolute error counts.
    EXPECT_NEAR(actual.value, value, 2e-13 * std::max(std::abs(value), 1.0));
    EXPECT_NEAR(actual.slope, slope, 2e-13 * std::max(slope, 1e-3));
  }
}

TEST(LogImprovement, AgreesWithHighPrecisionFarIntoTheTail) {
  ExpectGolden(LogImprovement, "log_improvement");
}

TEST(LogProbability, AgreesWithHighPrecisionFarIntoTheTail) {
  ExpectGolden(LogProbability, "log_probability");
}

// Both formulas at the places where one takes over from the other.
TEST(LogImprovement, GrowsWithoutAStep) {
  for (const double at : {-2.25, 0.0, 2.5}) {
    for (const Function function : {LogImprovement, LogProbability}) {
      const double below = std::nextafter(at, -10.0);
      const ValueAndSlope left = function(below);
      const ValueAndSlope right = function(at);
      EXPECT_NEAR(left.value, right.value, 1e-13);
      EXPECT_NEAR(left.slope, right.slope, 1e-12 * right.slope + 1e-12);
    }
  }
}

TEST(LogImprovement, IsFiniteWhereverAPredictionCanLie) {
  for (double z = -1e150; z < -1e-3; z *= 0.7) {
    const ValueAndSlope gain = LogImprovement(z);
    ASSERT_TRUE(std::isfinite(gain.value)) << z;
    ASSERT_GT(gain.slope, 0.0) << z;
  }
  EXPECT_DOUBLE_EQ(LogImprovement(1e150).value, std::log(1e150));
}

}  // namespace
}  // namespace hpo::sampler
