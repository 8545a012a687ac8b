#include "server/analysis/curve_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(CurveSample, TakesTheStepsThatHaveTheMetric) {
  const CurvePoints points = PointsOf({{.step = 1, .metrics = {{"loss", 3.0}}},
                                       {.step = 2, .metrics = {{"f1", 0.5}}},
                                       {.step = 5, .metrics = {{"f1", 0.6}, {"loss", 1.0}}}},
                                      "loss");
  EXPECT_THAT(points.steps, ElementsAre(1, 5));
  EXPECT_THAT(points.values, ElementsAre(3.0, 1.0));
}

TEST(CurveSample, KeepsEndsAndExtremes) {
  CurvePoints points;
  for (int64_t i = 0; i < 1000; ++i) {
    points.steps.push_back(10 * i);
    points.values.push_back(std::sin(0.01 * static_cast<double>(i)));
  }
  points.values[321] = 9.0;
  points.values[700] = -9.0;
  points.values[701] = kNan;
  const CurvePoints kept = Thinned(points, 50);
  EXPECT_LE(kept.steps.size(), 50U);
  EXPECT_GT(kept.steps.size(), 40U);
  EXPECT_EQ(kept.values.size(), kept.steps.size());
  EXPECT_EQ(kept.steps.front(), 0);
  EXPECT_EQ(kept.steps.back(), 9990);
  EXPECT_TRUE(std::is_sorted(kept.steps.begin(), kept.steps.end()));
  EXPECT_TRUE(std::binary_search(kept.steps.begin(), kept.steps.end(), 3210));
  EXPECT_TRUE(std::binary_search(kept.steps.begin(), kept.steps.end(), 7000));
  EXPECT_EQ(std::adjacent_find(kept.steps.begin(), kept.steps.end()), kept.steps.end());
}

TEST(CurveSample, ShortOnesAndOnesWithoutNumbersStay) {
  const CurvePoints few{.steps = {1, 2, 3}, .values = {kNan, kNan, 1.0}};
  EXPECT_EQ(Thinned(few, 4).steps, few.steps);
  CurvePoints diverged;
  for (int64_t i = 0; i < 100; ++i) {
    diverged.steps.push_back(i);
    diverged.values.push_back(kNan);
  }
  EXPECT_THAT(Thinned(diverged, 4).steps, ElementsAre(0, 1, 99));
}

}  // namespace
}  // namespace hpo::server
